"""What may be quoted of a passage: its sentences, list items and rows."""
