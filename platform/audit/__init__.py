"""The audit log: its list, who read what documents say, and both as a stream of events for other systems."""
