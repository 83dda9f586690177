"""How often tools may be called: counted, shown and set."""
