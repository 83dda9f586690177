"""What a sample collection comes with: a conversation, a reviewed dataset, a finished experiment; and its removal."""
