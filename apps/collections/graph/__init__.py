"""The code graph: what a file defines, imports and calls, and questions about it."""
