"""Settings, URL configuration, the embedded database, supervisor and commands."""
