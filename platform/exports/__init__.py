"""One signed file with a person's data or a whole workspace: written, verified, and imported elsewhere with new numbers."""
