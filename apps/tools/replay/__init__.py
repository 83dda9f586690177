"""Recorded runs and calls against today's tools and rules."""
