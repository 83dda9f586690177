"""Experiments: created, checked, started, paused, sent by batch, shown."""
