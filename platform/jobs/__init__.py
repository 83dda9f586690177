"""Background jobs on leases over django-q2."""
