"""Tell other systems what happened: signed calls from an outbox, with a log."""
