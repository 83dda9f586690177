"""Embedders: text to vectors. Importing this package costs nothing; libraries load with the first text embedded."""
