"""A row as a plain value, its parts and checks, its columns, and the rubric it is graded by. Pure."""
