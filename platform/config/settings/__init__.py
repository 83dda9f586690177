"""Django settings: base, and dev, test and prod on top."""
