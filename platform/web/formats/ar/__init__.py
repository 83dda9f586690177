"""How Arabic writes moments and numbers."""
