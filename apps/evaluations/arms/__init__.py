"""What an arm asks, with which tools, and how an attack reaches it."""
