"""What search finds passages by: vectors in their spaces, terms, codes, and the indexes over them."""
