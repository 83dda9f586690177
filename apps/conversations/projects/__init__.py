"""Projects: folders of conversations with their own instructions, collections and people."""
