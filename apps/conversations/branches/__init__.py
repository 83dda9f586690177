"""Questions edited and answered once more: the branches of a conversation."""
