"""What an application asks a member for: the authorization request (OAuth 2.1, section 4.1.1), read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from basics.errors import Invalid
from basics.texts import gettext as _
from tenancy.models import Tenant
from tenancy.permissions import APP_DEFAULT, APP_SCOPES
from web.oauth.clients import Client, client_find

_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")  # SHA-256 in base64url
_ONCE = (
    "client_id",
    "redirect_uri",
    "response_type",
    "scope",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
)
MAX_STATE = 2000


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A request that may be put to the person.

    Attributes:
        scopes: what it asks for, of what there is; the usual ones where it names none.
    """

    client: Client
    redirect_uri: str
    scopes: frozenset[str]
    state: str
    challenge: str
    issuer: str

    @property
    def destination(self) -> str:
        """Where the person goes on to, in short: a host, or the name of a program's scheme."""
        parts = urlsplit(self.redirect_uri)
        return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"

    @property
    def is_local(self) -> bool:
        """Tell whether the answer goes to a program on the person's own machine."""
        return urlsplit(self.redirect_uri).scheme != "https"

    @property
    def form_source(self) -> str:
        """What a Content-Security-Policy must let the form's answer lead to."""
        parts = urlsplit(self.redirect_uri)
        is_named = parts.scheme in ("http", "https") and "[" not in parts.netloc
        # A policy has no words for an IPv6 address.
        return f"{parts.scheme}://{parts.netloc}" if is_named else f"{parts.scheme}:"

    def answer(self, **values: str) -> str:
        """Return the address that the answer is sent to, with ``state`` and issuer (RFC 9207)."""
        said = {**values, "iss": self.issuer} | ({"state": self.state} if self.state else {})
        mark = "&" if urlsplit(self.redirect_uri).query else "?"
        return f"{self.redirect_uri}{mark}{urlencode(said)}"


def authorization_parse(given: Any, *, tenant: Tenant, issuer: str, resource: str) -> AuthorizationRequest:
    """Read the parameters of an authorization request.

    Args:
        given: a QueryDict.
        tenant: whose server is asked.
        resource: the only one that tokens of this server are for.

    Raises:
        ClientRefused: who asks, or where the answer shall go.
        Invalid: anything else; ``code`` is OAuth's. The person is told, and nobody is sent anywhere: an address that
            anybody can register would make us a redirector for everybody (RFC 9700, section 4.11.2).
    """
    for name in _ONCE:
        if len(given.getlist(name)) > 1:
            raise Invalid("invalid_request", _("The application sent %(name)s twice.") % {"name": name})
    client = client_find(tenant, given.get("client_id", ""))
    redirect_uri = given.get("redirect_uri") or (
        client.redirect_uris[0] if len(client.redirect_uris) == 1 else ""
    )
    if not client.takes(redirect_uri):
        raise Invalid(
            "invalid_request",
            _("The application didn't register the address it wants the response sent to."),
        )
    if given.get("response_type") != "code":
        raise Invalid("unsupported_response_type", _("The application must ask for response_type “code”."))
    challenge = given.get("code_challenge", "")
    if given.get("code_challenge_method") != "S256" or not _CHALLENGE.match(challenge):
        raise Invalid("invalid_request", _("The application must use PKCE with the method S256."))
    if given.get("resource", resource) != resource:
        raise Invalid("invalid_target", _("The application asks for a different server than this workspace."))
    state = given.get("state", "")
    if len(state) > MAX_STATE:
        raise Invalid(
            "invalid_request",
            _("The application's state has more than %(most)s characters.") % {"most": MAX_STATE},
        )
    asked = frozenset(given.get("scope", "").split())
    scopes = asked & APP_SCOPES.keys() if asked else APP_DEFAULT
    if not scopes:
        raise Invalid(
            "invalid_scope",
            _("The application doesn't ask for any known permission. Known: %(known)s.")
            % {"known": ", ".join(sorted(APP_SCOPES))},
        )
    return AuthorizationRequest(client, redirect_uri, scopes, state, challenge, issuer)
