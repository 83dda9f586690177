"""Who may call which tool: grants, the matrix, and the dry run that says why."""
