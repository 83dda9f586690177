"""Markdown of people and models as safe HTML: one renderer, and what each use of it allows."""
