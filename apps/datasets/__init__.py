"""QA datasets made from collections (to come)."""
