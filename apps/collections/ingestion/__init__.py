"""From bytes to checked pages and chunks, in a limited child process."""
