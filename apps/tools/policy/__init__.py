"""Which calls are allowed, asked about or denied, and how a rule says it."""
