"""What the model of a conversation may call."""
