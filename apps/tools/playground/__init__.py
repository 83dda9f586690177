"""One tool's page: what it is, who may call it and why, and a form to try a call."""
