"""What was said, as one reader may see it now: reads, search, and the locks that writes take."""
