"""The way of one document from its bytes to rows that are searched, stage by stage."""
