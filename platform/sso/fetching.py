"""Requests to an identity provider: through the guard of all outgoing requests, no redirects, bounded in time and size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from basics.errors import Denied
from basics.net_guard import GuardedTransport
from basics.net_policy import AddressRefused, NetPolicy, address_refusal, url_check

SECONDS = 10.0
MAX_BYTES = 500_000
JSON = {"Accept": "application/json"}


class ProviderFailed(Denied):
    """The identity provider, or what was given as such, did not do its part; the message says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, status=403)


def provider_policy() -> NetPolicy:
    """Return where providers may be: public hosts on any usual port, and the networks that the operator has opened.

    As a model server, a provider is named by an owner alone, so a workspace's list of outgoing hosts doesn't bind it.
    """
    opened = NetPolicy.of(settings.FETCH_NETWORKS)
    return NetPolicy(allow=opened.allow, high_ports=True)


def address_checked(url: str, what: str) -> str:
    """Return the address of a provider.

    Plain http is taken for an address in a network that the operator has opened, and for nothing else.

    Raises:
        ProviderFailed: it isn't one.
    """
    policy = provider_policy()
    try:
        url_check(url, policy)
    except AddressRefused as refused:
        raise ProviderFailed("sso_address", f"{what}: {refused.message}") from refused
    if not url.startswith("https://") and not _is_opened(url, policy):
        raise ProviderFailed("sso_address", f"{what}: the address must begin with https://.")
    return url


def _is_opened(url: str, policy: NetPolicy) -> bool:
    try:
        address = ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return False
    return any(address in net for net in policy.allow) and not address_refusal(address, policy)


def document_get(url: str, what: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object at a provider's address. Raises ProviderFailed."""
    return _object(_called("GET", url, what, {**JSON, **(headers or {})}, None), what)


def bytes_get(url: str, what: str) -> bytes:
    """Return what is at a provider's address. Raises ProviderFailed."""
    return _called("GET", url, what, {}, None)


def form_post(url: str, what: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
    """Send a form to a provider's address; returns the JSON object that it answers. Raises ProviderFailed."""
    return _object(_called("POST", url, what, {**JSON, **headers}, dict(form)), what)


def _called(method: str, url: str, what: str, headers: dict[str, str], form: dict[str, str] | None) -> bytes:
    address_checked(url, what)
    headers |= {"Accept-Encoding": "identity"}
    transport = GuardedTransport(provider_policy(), seconds=SECONDS)
    try:
        with (
            httpx2.Client(transport=transport, timeout=SECONDS, follow_redirects=False) as http,
            http.stream(method, url, headers=headers, data=form) as response,
        ):
            body = b""
            for piece in response.iter_raw():
                body += piece
                if len(body) > MAX_BYTES:
                    raise ProviderFailed(
                        "sso_provider", f"{what}: the answer is larger than {MAX_BYTES:,} bytes."
                    )
    except AddressRefused as refused:
        raise ProviderFailed("sso_address", f"{what}: {refused.message}") from refused
    except httpx2.HTTPError as failed:
        raise ProviderFailed(
            "sso_unreachable", f"{what}: the identity provider could not be reached."
        ) from failed
    if response.status_code != 200:
        raise ProviderFailed(
            "sso_provider", f"{what}: the identity provider answered {response.status_code}."
        )
    return body


def _object(body: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProviderFailed("sso_provider", f"{what}: the answer isn't JSON.") from error
    if not isinstance(found, dict):
        raise ProviderFailed("sso_provider", f"{what}: the answer isn't a JSON object.")
    return found
