"""Rows from conversations and from feedback."""
