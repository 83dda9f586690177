"""Who asks to be connected, by one of two names: a registration that is its own record, or the URL of a document.

Registering (RFC 7591) stores nothing: the client id is what was registered, signed (its appendix A.5.2). So anybody may
register as often as they like, and there is nothing to fill or to clean up. The URL of a document (draft-ietf-oauth-client-
id-metadata-document) is fetched when a signed-in member looks at the question, through the guard against addresses of our
own network and from the hosts that the workspace lets anything be asked of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.core import signing

from basics.errors import DomainError
from basics.net_guard import GuardedTransport
from basics.net_policy import AddressRefused, NetPolicy, url_check
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.models import Tenant
from tenancy.outgoing import outgoing_policy

_SALT = "web.oauth.client"
_PREFIX = "gwc_"
MAX_URIS = 5
MAX_URI = 500
MAX_CLIENT_ID = 2000
MAX_DOCUMENT = 20_000
FETCH_SECONDS = 5.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# RFC 8252, section 7.1: a scheme of an application is a name that its maker owns, the wrong way round. These well-known
# editors took a short one.
_APP_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+\Z")
_EDITORS = frozenset({"cursor", "vscode", "vscode-insiders", "windsurf"})


class ClientRefused(DomainError):
    """The client is unknown, or what it says about itself cannot be used; ``code`` is OAuth's."""


@dataclass(frozen=True, slots=True)
class Client:
    """An application as it describes itself.

    Attributes:
        name: what it calls itself; anybody can choose any.
        home: host whose document says so, "" for one that only registered.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    home: str = ""

    def takes(self, redirect_uri: str) -> bool:
        """Tell whether it registered this address: exactly, but for the port on the person's own machine (RFC 8252, 7.3)."""
        return any(
            redirect_uri == known or _same_but_port(redirect_uri, known) for known in self.redirect_uris
        )


def client_register(slug: str, said: Any) -> Client:
    """Return a client of this workspace's server, whose id is the registration itself.

    Raises:
        ClientRefused: ``invalid_redirect_uri`` or ``invalid_client_metadata`` (RFC 7591, section 3.2.2).
    """
    client = _described("", said)
    facts = {"t": slug, "n": client.name, "r": list(client.redirect_uris)}
    client_id = _PREFIX + signing.dumps(facts, salt=_SALT, compress=True)
    if len(client_id) > MAX_CLIENT_ID:
        raise ClientRefused("invalid_client_metadata", "The redirect URIs are too long together.")
    return Client(client_id, client.name, client.redirect_uris)


def client_find(tenant: Tenant, client_id: str) -> Client:
    """Return the client of an id, as a workspace's server knows it.

    Raises:
        ClientRefused: ``invalid_client``: it is unknown here, or its document cannot be had or used.
    """
    if client_id.startswith("https://"):
        return _of_document(client_id, outgoing_policy(tenant.pk))
    facts: dict[str, Any] = {}
    if len(client_id) <= MAX_CLIENT_ID and client_id.startswith(_PREFIX):
        try:
            facts = signing.loads(client_id.removeprefix(_PREFIX), salt=_SALT)
        except signing.BadSignature:
            facts = {}
    if facts.get("t") != tenant.slug:
        raise ClientRefused(
            "invalid_client", _("This application isn't registered here. Have it register again.")
        )
    return Client(client_id, facts["n"], tuple(facts["r"]))


def redirect_uri_fault(uri: str) -> str:
    """Return why codes may not be sent to an address, "" when they may."""
    if len(uri) > MAX_URI or not uri.isascii() or not uri.isprintable() or any(c in uri for c in ' \\"<>'):
        return (
            f"a redirect URI can have at most {MAX_URI} printable ASCII characters, without blanks, "
            f"quotes and backslashes"
        )
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "a redirect URI must be a complete address"
    if "#" in uri or "@" in parts.netloc or "*" in parts.netloc:
        return "a redirect URI can't contain a fragment, user name or wildcard"
    if parts.scheme == "https":
        return "" if host else "a redirect URI needs a host"
    if parts.scheme == "http":
        return (
            "" if host in _LOOPBACK else "http:// is only allowed for the person's own machine; use https://"
        )
    if parts.scheme in _EDITORS or _APP_SCHEME.match(parts.scheme):
        return ""
    return "an application's scheme must be a reversed domain name, for example com.example.app:/callback"


def _described(client_id: str, said: Any, home: str = "") -> Client:
    if not isinstance(said, Mapping):
        raise ClientRefused("invalid_client_metadata", "Send the client's metadata as a JSON object.")
    uris = said.get("redirect_uris")
    if (
        not isinstance(uris, list)
        or not 1 <= len(uris) <= MAX_URIS
        or not all(isinstance(u, str) for u in uris)
    ):
        raise ClientRefused("invalid_redirect_uri", f"Give 1 to {MAX_URIS} redirect_uris.")
    for uri in uris:
        if fault := redirect_uri_fault(uri):
            raise ClientRefused("invalid_redirect_uri", f"{uri[:100]!r}: {fault}.")
    for member, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        given = said.get(member, [needed])
        if not isinstance(given, list) or needed not in given:
            raise ClientRefused("invalid_client_metadata", f"{member} must hold {needed!r}.")
    name = said.get("client_name") or home or urlsplit(uris[0]).hostname or "An application"
    if not isinstance(name, str):
        raise ClientRefused("invalid_client_metadata", "client_name must be text.")
    shown = " ".join("".join(c for c in name if c.isprintable()).split())[:80]
    return Client(client_id, shown or "An application", tuple(uris), home)


def _of_document(url: str, policy: NetPolicy) -> Client:
    try:
        parts = urlsplit(url)
        if parts.path in ("", "/") or "#" in url or "/./" in url or "/../" in url:
            raise ClientRefused(
                "invalid_client", _("A client id that is an address needs a path and can't have a fragment.")
            )
        said = json.loads(document_fetch(url, policy))
        if not isinstance(said, dict) or said.get("client_id") != url:
            raise ClientRefused(
                "invalid_client", _("The document at the client's address describes a different client.")
            )
        if said.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in said:
            raise ClientRefused(
                "invalid_client",
                _("Only clients without a secret (token_endpoint_auth_method “none”) can be connected."),
            )
        return _described(url, said, home=parts.hostname or "")
    except (ValueError, RecursionError) as error:
        raise ClientRefused(
            "invalid_client", _("There is no JSON document at the client's address.")
        ) from error


def document_fetch(url: str, policy: NetPolicy) -> bytes:
    """Return what stands at an address that a stranger named: no redirects, bounded in time and size.

    Args:
        policy: where it may stand.

    Raises:
        ClientRefused: it cannot be had.
    """
    try:
        url_check(url, policy)
        with (
            httpx2.Client(
                transport=GuardedTransport(policy, seconds=FETCH_SECONDS),
                timeout=FETCH_SECONDS,
                follow_redirects=False,
            ) as http,
            http.stream(
                "GET", url, headers={_("Accept"): "application/json", "Accept-Encoding": "identity"}
            ) as response,
        ):
            body = b""
            for piece in response.iter_raw():
                body += piece
                if len(body) > MAX_DOCUMENT:
                    raise ClientRefused(
                        "invalid_client",
                        _("The client's document is larger than %(max_bytes)s bytes.")
                        % {"max_bytes": number_told(MAX_DOCUMENT)},
                    )
    except AddressRefused as refused:
        raise ClientRefused("invalid_client", refused.message) from refused
    except httpx2.HTTPError as failed:
        raise ClientRefused(
            "invalid_client", _("The client's document could not be fetched. Try again later.")
        ) from failed
    if response.status_code != 200:
        raise ClientRefused(
            "invalid_client",
            _("The request for the client's document returned status %(status)s.")
            % {"status": response.status_code},
        )
    return body


def _same_but_port(uri: str, known: str) -> bool:
    try:
        one, two = urlsplit(uri), urlsplit(known)
        _ = one.port
    except ValueError:
        return False
    if one.scheme != "http" or one.hostname not in _LOOPBACK or redirect_uri_fault(uri):
        return False
    return (one.scheme, one.hostname, one.path, one.query) == (two.scheme, two.hostname, two.path, two.query)
