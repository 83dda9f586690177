"""Export and import of what a workspace states about tools, and its history."""
