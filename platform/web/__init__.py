"""The edge: requests, errors, shell pages, settings, health, REST basics."""
