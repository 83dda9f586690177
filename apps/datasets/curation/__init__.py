"""Checks of rows before they become a version or leave the house: duplicates, contamination, splits, secrets. Pure."""
