"""Source code: its structure through tree-sitter, chunks by function and class, and the edges of the code graph."""
