"""Workspaces, people, keys, audit, and the walls between tenants."""
