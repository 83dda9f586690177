"""The log of calls and of reads."""
