"""OpenID Connect as a relying party: authorization code with PKCE, and an ID token that is believed only when all of it fits.

OpenID Connect Core 1.0 (https://openid.net/specs/openid-connect-core-1_0.html), Discovery 1.0, RFC 7636 (PKCE), RFC 9207
(issuer in the answer), RFC 9700 (best practice). Signatures and keys are PyJWT's work. Nothing of a provider is kept between
two sign-ins: a key that it has withdrawn is not taken once more, and a new one needs no waiting.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sso.fetching import ProviderFailed, address_checked, document_get, form_post
from tenancy.crypto import Secret

FAMILIES = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "EC", "ES384": "EC", "ES512": "EC", "EdDSA": "OKP",
}  # fmt: skip
"""Algorithms of ID tokens -> kind of their keys. None is symmetric: a public key never counts as a shared secret."""
SCOPE = "openid email profile"
SKEW_S = 60
MAX_AGE_S = 600
"""An ID token comes straight from the provider, so one that was made long ago is an old one."""
MAX_TOKEN = 64_000
MIN_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider's discovery document says, as far as it is used."""

    issuer: str
    authorization: str
    token: str
    jwks: str
    userinfo: str
    algorithms: frozenset[str]
    methods: frozenset[str]
    states_issuer: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to sign in that is under way, as it is kept in the browser's session.

    Attributes:
        began: seconds since 1970.
        next: a path of this server.
    """

    connection: int
    nonce: str
    verifier: str
    began: float
    next: str

    @classmethod
    def new(cls, *, connection: int, next: str) -> Asked:  # noqa: A002 - what it is called in addresses
        """Return a request with secrets of its own."""
        nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        return cls(connection, nonce, verifier, time.time(), next)

    @property
    def challenge(self) -> str:
        """The code challenge of the verifier (S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def provider_read(issuer: str) -> Provider:
    """Read a provider's discovery document.

    Raises:
        ProviderFailed: there is none, it is another issuer's, or it lacks what is needed.
    """
    said = document_get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", "Discovery")
    if said.get("issuer") != issuer:
        raise ProviderFailed(
            "sso_issuer",
            f"Discovery: the document says that its issuer is {str(said.get('issuer'))[:200]}. Enter exactly that.",
        )
    named = {}
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        if not isinstance(said.get(name), str):
            raise ProviderFailed("sso_provider", f"Discovery: the document names no {name}.")
        named[name] = address_checked(said[name], name)
    userinfo = said.get("userinfo_endpoint")
    stated = _texts(said.get("id_token_signing_alg_values_supported")) or {"RS256"}
    algorithms = frozenset(stated & FAMILIES.keys())
    if not algorithms:
        raise ProviderFailed(
            "sso_provider", "Discovery: the provider signs with no public key that is known here."
        )
    return Provider(
        issuer=issuer,
        authorization=named["authorization_endpoint"],
        token=named["token_endpoint"],
        jwks=named["jwks_uri"],
        userinfo=address_checked(userinfo, "userinfo_endpoint") if isinstance(userinfo, str) else "",
        algorithms=algorithms,
        methods=frozenset(
            _texts(said.get("token_endpoint_auth_methods_supported")) or {"client_secret_basic"}
        ),
        states_issuer=said.get("authorization_response_iss_parameter_supported") is True,
    )


def authorization_url(
    provider: Provider, *, client_id: str, redirect_uri: str, state: str, asked: Asked
) -> str:
    """Return where the browser is sent."""
    values = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": SCOPE,
        "state": state,
        "nonce": asked.nonce,
        "code_challenge": asked.challenge,
        "code_challenge_method": "S256",
    }
    mark = "&" if urlsplit(provider.authorization).query else "?"
    return f"{provider.authorization}{mark}{urlencode(values)}"


def claims_fetch(
    provider: Provider, *, client_id: str, secret: Secret, redirect_uri: str, code: str, asked: Asked
) -> dict[str, Any]:
    """Exchange a code, and return the claims of the ID token it brings, those of userinfo too where no address is in it.

    Raises:
        ProviderFailed: anything doesn't fit.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": asked.verifier,
    }
    headers = {}
    if not secret:
        form["client_id"] = client_id
    elif "client_secret_basic" in provider.methods:
        pair = f"{quote(client_id, safe='')}:{quote(secret.reveal(), safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form |= {"client_id": client_id, "client_secret": secret.reveal()}
    said = form_post(provider.token, "Token", form, headers)
    token = said.get("id_token")
    if not isinstance(token, str):
        raise ProviderFailed("sso_token", "The identity provider sent no ID token.")
    claims = claims_of(token, provider, keys_read(provider), client_id=client_id, nonce=asked.nonce)
    access = said.get("access_token")
    if "email" not in claims and provider.userinfo and isinstance(access, str) and access.isprintable():
        more = document_get(provider.userinfo, "Userinfo", {"Authorization": f"Bearer {access}"})
        if more.get("sub") != claims["sub"]:
            raise ProviderFailed(
                "sso_token", "The identity provider described a different person than the one it signed for."
            )
        claims = {**more, **claims}
    return claims


def keys_read(provider: Provider) -> list[dict[str, Any]]:
    """Return the provider's keys of this moment. Raises ProviderFailed."""
    keys = document_get(provider.jwks, "Keys").get("keys")
    if not isinstance(keys, list):
        raise ProviderFailed("sso_provider", "Keys: the document has no list of keys.")
    return [key for key in keys[:100] if isinstance(key, dict)]


def claims_of(
    token: str, provider: Provider, keys: list[dict[str, Any]], *, client_id: str, nonce: str
) -> dict[str, Any]:
    """Return the claims of an ID token that this provider made for this client and this request (Core 1.0, 3.1.3.7).

    Raises:
        ProviderFailed: ``sso_token``; the message says what doesn't fit, for the log of the workspace.
    """
    if len(token) > MAX_TOKEN:
        raise _unfit("it is too large")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.InvalidTokenError as error:
        raise _unfit("it can't be read") from error
    algorithm = header.get("alg")
    if algorithm not in provider.algorithms:
        raise _unfit(f"it is signed with {str(algorithm)[:20]}")
    if "crit" in header:
        raise _unfit("it asks for an extension")
    problem = "no key of the provider fits"
    for key in keys:
        if not _fits(key, header):
            continue
        try:
            claims = jwt.decode(
                token,
                _public(key, algorithm),
                algorithms=[algorithm],
                audience=client_id,
                issuer=provider.issuer,
                leeway=SKEW_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub", "nonce"]},
            )
        except jwt.InvalidSignatureError:
            problem = "the signature is wrong"
            continue
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise _unfit(str(error)[:200] or type(error).__name__) from error
        return _checked(claims, client_id=client_id, nonce=nonce)
    raise _unfit(problem)


def _fits(key: Mapping[str, Any], header: Mapping[str, Any]) -> bool:
    """Tell whether a key may have signed: what a token says of its own key beyond the id (jku, jwk, x5u) plays no part."""
    if key.get("kty") != FAMILIES[header["alg"]] or key.get("use", "sig") != "sig":
        return False
    if key.get("alg", header["alg"]) != header["alg"]:
        return False
    return "kid" not in header or key.get("kid") == header["kid"]


def _public(key: Mapping[str, Any], algorithm: str) -> Any:
    public = jwt.PyJWK({k: v for k, v in key.items() if k not in {"d", "p", "q"}}, algorithm=algorithm).key
    if isinstance(public, RSAPublicKey) and public.key_size < MIN_RSA_BITS:
        raise ValueError(f"a key of the provider has fewer than {MIN_RSA_BITS} bits")
    return public


def _checked(claims: dict[str, Any], *, client_id: str, nonce: str) -> dict[str, Any]:
    audience = claims["aud"]
    if "azp" in claims and claims["azp"] != client_id:
        raise _unfit("it was made for another client")
    if isinstance(audience, list) and len(audience) > 1 and "azp" not in claims:
        raise _unfit("it is for several clients and names none")
    if not isinstance(claims["nonce"], str) or not hmac.compare_digest(
        claims["nonce"].encode(), nonce.encode()
    ):
        raise _unfit("it answers another request")
    if claims["iat"] < time.time() - MAX_AGE_S - SKEW_S:
        raise _unfit("it was made too long ago")
    subject = claims["sub"]
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255 or not subject.isprintable():
        raise _unfit("it names no person")
    return claims


def _texts(value: Any) -> set[str]:
    return {one for one in value if isinstance(one, str)} if isinstance(value, list) else set()


def _unfit(why: str) -> ProviderFailed:
    return ProviderFailed("sso_token", f"The ID token doesn't fit: {why}.")
