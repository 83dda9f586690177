"""What is wrong with rows: duplicates, contamination, secrets, splits that leak, passages without a question."""
