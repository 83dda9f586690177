"""A collection as a whole: its settings, its move to another embedding model, checks, samples."""
