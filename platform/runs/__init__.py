"""Runs of the loop, their journal and their event streams."""
