"""The memory of people, and the instructions of workspaces."""
