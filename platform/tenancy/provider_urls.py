"""What a workspace may enter as the address of a model server.

This judges the form alone, so that a mistake is told at once: no name is resolved. Where a connection leads is judged when
it is made (``tenancy.model_servers``).
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from basics.errors import Invalid
from basics.net_policy import address_refusal
from basics.texts import gettext as _
from tenancy.outgoing import model_policy

_PORTS = frozenset({80, 443})
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?")  # ``hostname`` is in small letters
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
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    # A backslash or a space is read differently by different parsers: neither belongs in a URL.
    is_odd = not text.isascii() or not text.isprintable() or " " in text or "\\" in text
    if is_odd or parts.scheme not in {"http", "https"} or not host or len(text) > 200:
        raise _invalid(_("This isn't a server address. Expected https://host/path."))
    if parts.username or parts.password or parts.query or parts.fragment:
        raise _invalid(_("The address can't contain a user name, ? or #."))
    if _is_inside(host):
        raise _invalid(
            _(
                "This address is in the server's own network. The operator can allow such addresses with "
                "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS=1."
            )
        )
    if port is not None and port < 1024 and port not in _PORTS and not model_policy().allow:
        raise _invalid(
            _(
                "Port %(port)s belongs to another service. Model servers are called on 80, 443 and from 1024 "
                "on."
            )
            % {"port": port}
        )
    return text


def _is_inside(host: str) -> bool:
    policy = model_policy()
    try:
        return bool(address_refusal(ip_address(host.partition("%")[0]), policy)) or "%" in host
    except ValueError:
        # Only a dotted name is public. Decimal or hex forms of an address (http://2130706433/) have no dot or end in
        # a label that is a number, which no public name does.
        last = host.rsplit(".", 1)[-1]
        if last.startswith("0x") or last.isdigit() or not _NAME.fullmatch(host):
            return True
        # Names of the own network may lead to what the operator allows.
        return not policy.allow and ("." not in host or host.endswith(_INSIDE))


def _invalid(message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": "base_url"})
