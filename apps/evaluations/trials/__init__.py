"""One row asked of one arm: answered, scored, kept, and its page."""
