"""Django database backend that keeps the session's role and tenant equal to the tenant scope."""
