"""Files attached to questions."""
