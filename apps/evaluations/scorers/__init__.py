"""Scorers: fixed rules, retrieval measures, tool use, and judges. See ``base`` for what each of them is."""
