"""Why rows fail: by tag and in groups, and datasets made of them."""
