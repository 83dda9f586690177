"""Repositories of a collection: state, commits, differences, who wrote what."""
