"""Tags for templates that show answers."""
