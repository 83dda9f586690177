"""SCIM 2.0 (RFC 7643, RFC 7644) as service provider, in the dialects of Okta and Microsoft Entra."""
