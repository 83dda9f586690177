"""How German writes moments and numbers."""
