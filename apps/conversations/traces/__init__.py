"""How an answer came about: searches, calls, tokens, money and times."""
