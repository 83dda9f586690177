"""Template filters of budgets: ``{% load money %}``."""
