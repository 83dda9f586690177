"""Planted instructions as values: attacks, the texts they are planted into, and the rows of a suite. Pure."""
