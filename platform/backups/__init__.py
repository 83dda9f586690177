"""Backups of the whole installation: written, listed, proved, restored and forgotten."""
