"""Imports of many files at once: archives, folders, repositories, web pages."""
