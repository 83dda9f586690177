"""Erase workspaces, people, documents and conversations with a report, keep the ledger of erasures beside the backups, hold what the law holds."""
