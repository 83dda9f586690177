"""The documents that rows quote, and under which licence."""
