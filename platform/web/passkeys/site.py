"""For which site a passkey holds: the host that the browser asked for, and the origins that its pages may have.

Both come from the request as Django checked it (``ALLOWED_HOSTS``, the scheme that a trusted proxy tells). A proxy that
changes host or port on the way names the origin that people see in ``GROUNDWORK_TRUSTED_ORIGINS``, as forms need it too.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port

_PORTS = {"https": 443, "http": 80}
Origin = tuple[str, str, int]


def rp_id(request: HttpRequest) -> str:
    """Return the relying party id (WebAuthn, section 5.4.2): the host without its port."""
    return split_domain_port(request.get_host())[0]


def origins(request: HttpRequest) -> set[Origin]:
    """Return the origins, as scheme, host and port, whose pages may use a passkey of this site."""
    found = {_origin(f"{request.scheme}://{request.get_host()}")}
    found |= {_origin(one) for one in settings.CSRF_TRUSTED_ORIGINS if "*" not in one}
    return {one for one in found if one is not None and one[1] == rp_id(request) and _is_secure(one)}


def is_origin(request: HttpRequest, origin: str) -> bool:
    """Tell whether a browser's origin, such as ``https://ask.example.com``, is one of this site."""
    return _origin(origin) in origins(request)


def _is_secure(origin: Origin) -> bool:
    scheme, host, _ = origin
    return scheme == "https" or host == "localhost" or host.endswith(".localhost")


def _origin(text: str) -> Origin | None:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # no address at all
        return None
    if (
        parts.scheme not in _PORTS
        or not parts.hostname
        or parts.path
        or parts.query
        or parts.username is not None
    ):
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]
