"""Reading the best candidates of a search once more."""
