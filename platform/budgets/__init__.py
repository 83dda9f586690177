"""Budgets in money: what may be spent on models, and the ledger that holds and counts."""
