"""Questions: asked, queued, stopped, decided, answered by whom."""
