"""Named sets of tools, granted as one and brought along by collections."""
