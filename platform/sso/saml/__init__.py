"""SAML 2.0 as a service provider: what it reads, what it believes of it, and what it says of itself."""
