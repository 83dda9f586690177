"""Small pure building blocks that every room may use: error kinds and shared types."""
