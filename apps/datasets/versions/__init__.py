"""Rows frozen as an immutable version, with their manifest, and what changed between two."""
