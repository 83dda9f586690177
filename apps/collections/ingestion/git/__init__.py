"""Answers about a collection's repository, from packs that our import made. Runs in the limited child, without a git program."""
