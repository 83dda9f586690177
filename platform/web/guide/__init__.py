"""The guide for users: its pages, and which of them a page of the portal leads to."""
