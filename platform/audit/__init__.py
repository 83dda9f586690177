"""Who read what, and the audit trail as a stream of events for other systems."""
