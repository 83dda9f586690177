"""Passkeys: a person adds, names and removes them, signs in with one, and shows one as second factor."""
