"""The chat: its pages, its message box, its live answer."""
