"""Calls that wait for a person, and what was decided about them."""
