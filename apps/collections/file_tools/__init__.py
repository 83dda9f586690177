"""What a model may do with the files of a collection."""
