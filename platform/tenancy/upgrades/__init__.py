"""Upgrades while people work: what a migration does to the code before it, and how it waits for its locks."""
