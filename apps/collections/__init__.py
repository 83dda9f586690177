"""Collections of documents: upload, ingestion, chunks, vectors, search."""
