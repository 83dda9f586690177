"""What rows, files and locks of a collection need at the lowest: bulk writes, originals on disk, the ledger, job locks."""
