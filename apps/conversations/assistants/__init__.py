"""Assistants: their versions, settings and worked examples."""
