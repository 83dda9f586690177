"""How Japanese writes moments and numbers."""
