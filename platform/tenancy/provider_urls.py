"""Which addresses a workspace may have this server call.

A workspace's admin names the URL of a model server and this server then talks to it: without a rule that is a way into
the operator's own network (server-side request forgery). Names are not resolved here, so a public name that points
inside is not caught: where that matters, the network must refuse it (docs/threat-model.md).
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings

from basics.errors import Invalid

_INSIDE = (".localhost", ".local", ".internal", ".lan", ".home", ".corp", ".intranet")


def checked_url(text: str) -> str:
    """Return the URL without a trailing slash ("" stays "").

    Raises:
        Invalid: not http(s), with a user name, query or fragment, or on a private host that the operator has not allowed.
    """
    text = text.strip().rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        host, _ = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    # A backslash or a space is read differently by different parsers: neither belongs in a URL.
    is_odd = not text.isascii() or not text.isprintable() or " " in text or "\\" in text
    if is_odd or parts.scheme not in {"http", "https"} or not host or len(text) > 200:
        raise _invalid("This is no address of a server: expected https://host/path.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _invalid("The address may have no user name, question mark or hash in it.")
    if not settings.ALLOW_PRIVATE_MODEL_URLS and _is_inside(host):
        raise _invalid(
            "This address lies in the server's own network. The operator can allow such addresses with "
            "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS=1."
        )
    return text


def _is_inside(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        # Only a dotted name is public. Decimal or hex forms of an address (http://2130706433/) have no dot or end in
        # a label that is a number, which no public name does.
        last = host.rsplit(".", 1)[-1]
        return "." not in host or host.endswith(_INSIDE) or last.startswith("0x") or last.isdigit()


def _invalid(message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": "base_url"})
