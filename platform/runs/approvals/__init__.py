"""Calls that a person must approve or answer: what waits, who decides, the decision and its expiry."""
