"""How English writes moments and numbers."""
