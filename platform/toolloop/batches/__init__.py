"""Batches of model calls: half the price, and answers within a day."""
