"""The operator's own pages: how the whole installation is, and what in it needs a person."""
