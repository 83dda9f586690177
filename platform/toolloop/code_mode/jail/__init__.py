"""The sandbox of code mode on Linux: CPython itself, in a process that may only compute and talk to its host."""
