"""How French writes moments and numbers."""
