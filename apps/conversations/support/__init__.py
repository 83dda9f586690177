"""Whether sources support what an answer says: by words, by a local model, by a language model."""
