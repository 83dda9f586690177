"""Calls from outside of a conversation: run at once, or parked until they are approved."""
