"""Tools: who may call what, the tools that come with the code, and calls from outside of a conversation."""
