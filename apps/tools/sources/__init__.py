"""A workspace's own tools: their sources, versions, credentials and contract tests."""
