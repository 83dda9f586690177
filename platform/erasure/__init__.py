"""Erase workspaces and people with a report, keep the ledger of erasures beside the backups, hold what the law holds."""
