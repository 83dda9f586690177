"""What calls and models were used for, and what they cost."""
