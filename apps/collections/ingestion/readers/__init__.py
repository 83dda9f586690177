"""Readers: one module a file format; ``registry`` names them by media type."""
