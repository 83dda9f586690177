"""Live answers that a rule chooses to be scored."""
