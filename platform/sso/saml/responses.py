"""What a response says, believed only when all of it fits: SAML Core 2.0 and the Web Browser SSO profile (Profiles 4.1.4).

https://docs.oasis-open.org/security/saml/v2.0/saml-core-2.0-os.pdf, saml-profiles-2.0-os.pdf, saml-bindings-2.0-os.pdf.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509

from sso.fetching import ProviderFailed
from sso.saml.documents import ASSERTION, Element, document_parse, found, text_of
from sso.saml.signatures import assertion_verified

MAX_RESPONSE = 300_000
"""Characters of a response in Base64; one with two thousand groups has about 200,000."""
SKEW = timedelta(seconds=60)
MAX_AGE = timedelta(minutes=10)
"""A response comes straight from the provider, so an assertion that was made long ago is an old one."""
SUCCESS = "urn:oasis:names:tc:SAML:2.0:status:Success"
BEARER = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
TRANSIENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
EMAIL_FORMAT = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
EMAIL_NAMES = (
    "email",
    "mail",
    "emailAddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
)
_CONDITIONS = {f"{{{ASSERTION}}}{name}" for name in ("AudienceRestriction", "OneTimeUse", "ProxyRestriction")}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z\Z")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a response must be for.

    Attributes:
        issuer: entity ID of the provider.
        audience: our entity ID.
        address: our assertion consumer service.
        email_name: attribute with the address; "" takes the usual names, then the name ID if it is an address.
        groups_name: attribute with the groups.
    """

    issuer: str
    audience: str
    address: str
    email_name: str
    groups_name: str
    certificates: list[x509.Certificate]


@dataclass(frozen=True, slots=True)
class Said:
    """What a response says.

    Attributes:
        claims: as an ID token has them: ``sub``, ``email``, groups.
        assertion_id: of the assertion, which counts once.
        request_id: of the request that it answers.
    """

    claims: dict[str, Any]
    assertion_id: str
    request_id: str


def response_read(encoded: str, expected: Expected, *, now: datetime) -> Said:
    """Return what a response says.

    Args:
        encoded: the form field ``SAMLResponse``.

    Raises:
        ProviderFailed: anything doesn't fit; the message says what, for the log of the workspace.
    """
    if len(encoded) > MAX_RESPONSE:
        raise _unfit("it is too large")
    try:
        data = base64.b64decode("".join(encoded.split()), validate=True)
    except (ValueError, binascii.Error) as error:
        raise _unfit("it isn't Base64") from error
    sent = document_parse(data, "Response")
    response, assertion = assertion_verified(sent, expected.certificates)
    _response_check(response, expected)
    _same(assertion, "Version", "2.0")
    made = _time(assertion.get("IssueInstant"), "IssueInstant")
    if made > now + SKEW or made < now - MAX_AGE - SKEW:
        raise _unfit("it was made too long ago, or in the future")
    if [text_of(one) for one in found(assertion, "./saml:Issuer")] != [expected.issuer]:
        raise _unfit("the assertion is another identity provider's")
    subject = _one(assertion, "./saml:Subject")
    request_id = _confirmation_check(subject, expected, now)
    if response.get("InResponseTo", request_id) != request_id:
        raise _unfit("response and assertion answer different requests")
    _conditions_check(_one(assertion, "./saml:Conditions"), expected, now)
    _statements_check(assertion, now)
    assertion_id = assertion.get("ID") or ""
    if not 1 <= len(assertion_id) <= 1000:
        raise _unfit("the assertion has no ID")
    return Said(_claims(assertion, _one(subject, "./saml:NameID"), expected), assertion_id, request_id)


def _response_check(response: Element, expected: Expected) -> None:
    _same(response, "Version", "2.0")
    _same(response, "Destination", expected.address)
    issuers = [text_of(one) for one in found(response, "./saml:Issuer")]
    if issuers not in ([], [expected.issuer]):
        raise _unfit("the response is another identity provider's")
    codes = found(response, "./samlp:Status/samlp:StatusCode")
    code = codes[0].get("Value", "") if len(codes) == 1 else ""
    if code != SUCCESS:
        raise ProviderFailed("sso_provider", f"The identity provider refused the sign-in ({_last(code)}).")


def _confirmation_check(subject: Element, expected: Expected, now: datetime) -> str:
    """Return which request the assertion answers, where it is made for who brings it here now (Profiles 4.1.4.2)."""
    confirmation = _one(subject, "./saml:SubjectConfirmation")
    if confirmation.get("Method") != BEARER:
        raise _unfit("it isn't for the one who brings it")
    data = _one(confirmation, "./saml:SubjectConfirmationData")
    _same(data, "Recipient", expected.address)
    _window_check(data, now, needs_end=True)
    request_id = str(data.get("InResponseTo", ""))
    if not request_id:
        raise ProviderFailed(
            "sso_unsolicited",
            "The provider began this sign-in itself. Open the workspace's own sign-in address instead, also from the "
            "provider's app launcher.",
        )
    return request_id


def _conditions_check(conditions: Element, expected: Expected, now: datetime) -> None:
    _window_check(conditions, now, needs_end=True)
    if {one.tag for one in conditions} - _CONDITIONS:
        raise _unfit("it has a condition that isn't known here")
    restrictions = found(conditions, "./saml:AudienceRestriction")
    if not restrictions:
        raise _unfit("it is for no audience")
    for one in restrictions:
        if expected.audience not in [text_of(audience) for audience in found(one, "./saml:Audience")]:
            raise _unfit("it is for another audience")


def _statements_check(assertion: Element, now: datetime) -> None:
    statements = found(assertion, "./saml:AuthnStatement")
    if not statements:
        raise _unfit("it doesn't say that anybody signed in")
    for one in statements:
        if (ends := one.get("SessionNotOnOrAfter")) and _time(ends, "SessionNotOnOrAfter") <= now - SKEW:
            raise _unfit("the session at the provider has ended")


def _claims(assertion: Element, name: Element, expected: Expected) -> dict[str, Any]:
    subject, form = text_of(name), name.get("Format", "")
    if not 1 <= len(subject) <= 255 or not subject.isprintable():
        raise _unfit("it names no person")
    if form == TRANSIENT:
        raise ProviderFailed(
            "sso_transient",
            "The provider names people differently each time. Set its name ID format to persistent or email address.",
        )
    said: dict[str, list[str]] = {}
    for one in found(assertion, "./saml:AttributeStatement/saml:Attribute"):
        values = [text_of(value) for value in found(one, "./saml:AttributeValue")]
        said.setdefault(one.get("Name", ""), []).extend(value for value in values if value)
    names = [expected.email_name] if expected.email_name else EMAIL_NAMES
    emails = {value for one in names for value in said.get(one, [])}
    if not emails and not expected.email_name and form == EMAIL_FORMAT:
        emails = {subject}
    if len({one.lower() for one in emails}) > 1:
        raise _unfit("it names several email addresses")
    claims: dict[str, Any] = {expected.groups_name: said.get(expected.groups_name, [])}
    return {**claims, "sub": subject, "email": next(iter(emails), None)}


def _window_check(element: Element, now: datetime, *, needs_end: bool) -> None:
    begins, ends = element.get("NotBefore"), element.get("NotOnOrAfter")
    if begins is not None and _time(begins, "NotBefore") > now + SKEW:
        raise _unfit("it isn't valid yet")
    if ends is None and needs_end:
        raise _unfit("it has no end")
    if ends is not None and _time(ends, "NotOnOrAfter") <= now - SKEW:
        raise _unfit("it has expired")


def _one(element: Element, path: str) -> Element:
    rows = found(element, path)
    if len(rows) != 1:
        raise _unfit(f"it has {len(rows)} of {path.rpartition(':')[2]}, not one")
    return rows[0]


def _same(element: Element, name: str, value: str) -> None:
    if element.get(name) != value:
        raise _unfit(f"{name} is {str(element.get(name))[:200]}, not {value}")


def _time(text: str | None, name: str) -> datetime:
    """Return a time, which SAML writes in UTC (Core 1.3.3)."""
    if text is None or not _TIME.match(text):
        raise _unfit(f"{name} isn't a time")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise _unfit(f"{name} isn't a time") from error


def _last(code: str) -> str:
    return re.sub(r"[^A-Za-z]", "", code.rpartition(":")[2])[:40] or "no status"


def _unfit(why: str) -> ProviderFailed:
    return ProviderFailed("sso_assertion", f"The response doesn't fit: {why}.")
