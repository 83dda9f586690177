"""People grade answers: queues, who grades what next, and their grades."""
