"""The tools of a workspace as its people see them, what is stated about each, and which fit a question."""
