"""A collection's folder on disk, reached by file descriptors alone; the limited child runs from here without Django."""
