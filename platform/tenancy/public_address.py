"""How people reach this server, for links in mails: as the settings name it, never as a request alone says."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port


def public_address(request: HttpRequest | None = None) -> str:
    """Return the server's origin without a slash at the end; "" where no setting names one in full.

    A stranger can ask for a mail to anybody (a new password, say) under any ``Host`` that a wildcard lets in, and its link
    would lead to their own server.

    Args:
        request: who asks for the mail; its origin counts where the settings name its host in full. A server may have several.
    """
    if request is not None:
        origin = f"{request.scheme}://{request.get_host()}"
        host = split_domain_port(request.get_host())[0]
        if host in map(str.lower, settings.ALLOWED_HOSTS) or origin in settings.CSRF_TRUSTED_ORIGINS:
            return origin
    for origin in settings.CSRF_TRUSTED_ORIGINS:
        if "*" not in origin:
            return str(origin).rstrip("/")
    for host in settings.ALLOWED_HOSTS:
        if "." in host.strip(".") and not host.startswith((".", "*", "127.")):
            return f"https://{host}"
    return ""
