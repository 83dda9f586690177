"""Template tags about tools."""
