"""Passages of documents: reading them one after another, their links and figures, and changes by hand."""
