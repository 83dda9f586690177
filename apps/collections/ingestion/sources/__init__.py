"""Where many files come from at once: archives, folders, git repositories, web pages, Chroma collections. No ORM."""
