"""Pages of the shell: the way in, a workspace's settings, search, health, the API's reference."""
