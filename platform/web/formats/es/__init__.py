"""How Spanish writes moments and numbers."""
