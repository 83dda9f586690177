"""Datasets and their rows: read, searched, added, changed, and shown to those who may read them."""
