"""Evaluation of models and settings on datasets (to come)."""
