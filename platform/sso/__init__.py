"""Sign-in for companies: a workspace's own identity provider (OpenID Connect), and the people it provisions (SCIM 2.0)."""
