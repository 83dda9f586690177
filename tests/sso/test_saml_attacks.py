"""SAML sign-in, attacked: none of these opens a page of the workspace.

XSW1 to XSW8 are the variants of “On Breaking SAML: Be Whoever You Want to Be” (USENIX Security 2012).
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from lxml import etree
from signxml.algorithms import CanonicalizationMethod, DigestAlgorithm, SignatureMethod
from signxml.signer import XMLSigner

from sso.fetching import ProviderFailed
from sso.models import SamlAnswer
from sso.saml.responses import MAX_RESPONSE, Said
from sso.saml.services import answer_keep, answer_take, saml_connection_set
from tenancy.models import AuditEvent, User
from tenancy.scope import platform_scope
from tests.cast import Cast
from tests.factories import make_member, make_user
from tests.sso.conftest import DOMAIN, domain_have
from tests.sso.saml_door import SamlDoor
from tests.sso.saml_provider import (
    DS,
    EMAIL,
    KEY,
    NS,
    OTHER_KEY,
    SAML,
    SAMLP,
    Asked,
    SamlKey,
    SamlProvider,
    encoded,
    iso,
)
from web.models import AttemptWindow

pytestmark = pytest.mark.django_db

BOSS = f"boss@{DOMAIN}"
Element = Any
Forge = Callable[[SamlProvider, Asked], Element | bytes]


@pytest.fixture
def door(cast: Cast) -> SamlDoor:
    found = SamlDoor(cast)
    make_member(cast.tenant, "owner", make_user(BOSS))
    return found


def parent_of(element: Element) -> Element:
    found = element.getparent()
    assert found is not None
    return found


def inner(root: Element) -> Element:
    return root.findall("saml:Assertion", NS)[0]


def signature(element: Element) -> Element:
    return element.findall("ds:Signature", NS)[0]


def evil_of(element: Element, *, new_id: bool = True) -> Element:
    """Return a copy of an assertion or response that names the boss, without its signature."""
    evil = copy.deepcopy(element)
    for one in evil.findall(".//ds:Signature", NS):
        if parent_of(one) is evil or parent_of(one).tag == f"{{{SAML}}}Assertion":
            parent_of(one).remove(one)
    for name in evil.iter(f"{{{SAML}}}NameID"):
        name.text = "boss"
    for value in evil.iter(f"{{{SAML}}}AttributeValue"):
        value.text = BOSS
    if new_id:
        evil.set("ID", "_evil")
    return evil


def wrapped(shape: Callable[[Element], Element | bytes], signs: str = "assertion") -> Forge:
    """Sign an honest response for Ada, then move its parts about."""

    def forge(provider: SamlProvider, asked: Asked) -> Element | bytes:
        provider.signs = signs
        return shape(etree.fromstring(etree.tostring(provider.respond(asked))))

    return forge


def xsw1(root: Element) -> Element:
    """The signed response goes into the signature of an evil one."""
    evil = evil_of(root)
    moved = signature(root)
    evil.insert(1, moved)
    moved.append(root)
    return evil


def xsw2(root: Element) -> Element:
    """The signed response stands before its signature, both inside of an evil one."""
    evil = evil_of(root)
    moved = signature(root)
    evil.insert(1, root)
    evil.insert(2, moved)
    return evil


def xsw3(root: Element) -> Element:
    """An evil assertion before the signed one."""
    root.insert(0, evil_of(inner(root)))
    return root


def xsw4(root: Element) -> Element:
    """The signed assertion inside of an evil one."""
    honest = inner(root)
    evil = evil_of(honest)
    root.replace(honest, evil)
    evil.append(honest)
    return root


def xsw5(root: Element) -> Element:
    """The evil assertion takes the signature; the honest one follows without."""
    honest = inner(root)
    kept = evil_of(honest)
    bare = copy.deepcopy(honest)
    bare.remove(signature(bare))
    kept.insert(1, signature(honest))
    root.replace(honest, kept)
    root.append(bare)
    return root


def xsw6(root: Element) -> Element:
    """The evil assertion takes the signature, and the honest one is inside of that."""
    honest = inner(root)
    evil, moved = evil_of(honest), signature(honest)
    root.replace(honest, evil)
    evil.insert(1, moved)
    moved.append(honest)
    return root


def xsw7(root: Element) -> Element:
    """The evil assertion is in an extension before the signed one."""
    extensions = etree.Element(f"{{{SAMLP}}}Extensions")
    extensions.append(evil_of(inner(root)))
    root.insert(1, extensions)
    return root


def xsw8(root: Element) -> Element:
    """The evil assertion takes the signature; the honest one is in an object of it."""
    honest = inner(root)
    evil, moved = evil_of(honest), signature(honest)
    root.replace(honest, evil)
    evil.insert(1, moved)
    etree.SubElement(moved, f"{{{DS}}}Object").append(honest)
    return root


def same_id(shape: Callable[[Element], Element]) -> Callable[[Element], Element]:
    """The same, where the evil assertion has the honest one's ID."""

    def shaped(root: Element) -> Element:
        honest = inner(root).get("ID", "")
        forged = shape(root)
        for one in forged.iter(f"{{{SAML}}}Assertion"):
            if one.get("ID") == "_evil":
                one.set("ID", honest)
        return forged

    return shaped


def lower_id(root: Element) -> Element:
    """The evil assertion has an attribute “Id” like the honest one's “ID”."""
    evil = evil_of(inner(root))
    evil.set("Id", inner(root).get("ID", ""))
    root.insert(0, evil)
    return root


def inside_a_response(root: Element) -> Element:
    """A whole signed response in an unsigned response, before the evil assertion."""
    evil = evil_of(root)
    evil.insert(1, root)
    return evil


def text(old: str | re.Pattern[str], new: str, signs: str = "assertion") -> Forge:
    """Change the text of a response after it was signed."""

    def shape(root: Element) -> bytes:
        said = etree.tostring(root).decode()
        found = re.sub(old, new, said, count=1) if isinstance(old, re.Pattern) else said.replace(old, new)
        assert found != said
        return found.encode()

    return wrapped(shape, signs)


def before_signing(change: Callable[[Element], None], signs: str = "assertion") -> Forge:
    """Have the provider sign something that it shouldn't."""

    def forge(provider: SamlProvider, asked: Asked) -> Element:
        provider.signs, provider.change = signs, change
        return provider.respond(asked)

    return forge


def put(path: str, name: str, value: str | Callable[[], str] | None) -> Callable[[Element], None]:
    """Set an attribute, or remove it with None."""

    def change(root: Element) -> None:
        for one in [root] if path == "." else root.findall(path, NS):
            if value is None:
                del one.attrib[name]
            else:
                one.set(name, value() if callable(value) else value)

    return change


def all_of(*changes: Callable[[Element], None]) -> Callable[[Element], None]:
    def change(root: Element) -> None:
        for one in changes:
            one(root)

    return change


def added(path: str, tag: str, tail: str = "") -> Callable[[Element], None]:
    def change(root: Element) -> None:
        etree.SubElement(root.findall(path, NS)[0], tag).tail = tail

    return change


def slashed(root: Element) -> None:
    found = root.findall(".//saml:Audience", NS)[0]
    found.text = f"{found.text}/"


def at(**delta: int) -> Callable[[], str]:
    """Tell the time before or after the moment of the attack, which comes long after this module was read."""
    return lambda: iso(datetime.now(UTC) + timedelta(**delta))


def dropped(path: str) -> Callable[[Element], None]:
    def change(root: Element) -> None:
        for one in root.findall(path, NS):
            parent_of(one).remove(one)

    return change


def said(path: str, value: str) -> Callable[[Element], None]:
    def change(root: Element) -> None:
        for one in root.findall(path, NS):
            one.text = value

    return change


def doubled(path: str, other: str = "", value: str = "") -> Callable[[Element], None]:
    """Repeat an element; the last one at the path ``other`` says ``value``."""

    def change(root: Element) -> None:
        one = root.findall(path, NS)[0]
        parent_of(one).append(copy.deepcopy(one))
        if other:
            root.findall(other, NS)[-1].text = value

    return change


def by(key: SamlKey) -> Forge:
    def forge(provider: SamlProvider, asked: Asked) -> Element:
        provider.key = key
        return provider.respond(asked)

    return forge


def borrowed(provider: SamlProvider, asked: Asked) -> bytes:
    """Sign with another key, and show the known certificate."""
    provider.key = OTHER_KEY
    honest = etree.tostring(provider.respond(asked)).decode()
    return re.sub(r"(<ds:X509Certificate>)[^<]*", rf"\g<1>{KEY.bare}", honest).encode()


class Weak(XMLSigner):
    """A signer that signs with what signxml itself no longer signs with."""

    def check_deprecated_methods(self) -> None:
        """Say nothing."""


def signed_with(**how: Any) -> Forge:
    def forge(provider: SamlProvider, asked: Asked) -> Element:
        provider.signer = Weak(
            **{
                "signature_algorithm": SignatureMethod.RSA_SHA256,
                "digest_algorithm": DigestAlgorithm.SHA256,
                "c14n_algorithm": CanonicalizationMethod.EXCLUSIVE_XML_CANONICALIZATION_1_0,
                **how,
            }
        )
        return provider.respond(asked)

    return forge


def unsigned(provider: SamlProvider, asked: Asked) -> Element:
    return provider.unsigned(asked)


def hmac_signed(secret: bytes) -> Forge:
    """What everybody knows (the certificate) as if it were a shared secret."""

    def shape(root: Element) -> Element:
        evil = evil_of(inner(root), new_id=False)
        moved = signature(inner(root))
        info = moved.findall("ds:SignedInfo", NS)[0]
        digest = hashlib.sha256(etree.tostring(evil, method="c14n", exclusive=True)).digest()
        info.findall(".//ds:DigestValue", NS)[0].text = base64.b64encode(digest).decode()
        info.findall("ds:SignatureMethod", NS)[0].set(
            "Algorithm", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"
        )
        evil.insert(1, moved)
        root.replace(inner(root), evil)
        mac = hmac.new(secret, etree.tostring(info, method="c14n", exclusive=True), "sha256").digest()
        moved.findall("ds:SignatureValue", NS)[0].text = base64.b64encode(mac).decode()
        return root

    return wrapped(shape)


def algorithm(value: str) -> Forge:
    return text(re.compile(r'(<ds:SignatureMethod Algorithm=)"[^"]*"'), rf'\1"{value}"')


def empty_signature(root: Element) -> Element:
    found = inner(root)
    evil = evil_of(found)
    etree.SubElement(evil, f"{{{DS}}}Signature")
    root.replace(found, evil)
    return root


def changed_digest(root: Element) -> Element:
    """The evil assertion with its own digest in the signature: the signature over that is missing."""
    found = inner(root)
    evil = evil_of(found, new_id=False)
    moved = signature(found)
    digest = hashlib.sha256(etree.tostring(evil, method="c14n", exclusive=True)).digest()
    moved.findall(".//ds:DigestValue", NS)[0].text = base64.b64encode(digest).decode()
    evil.insert(1, moved)
    root.replace(found, evil)
    return root


def two_digests(root: Element) -> Element:
    """CVE-2025-29774/29775: a comment in the digest, and a second SignedInfo."""
    found = inner(root)
    evil = evil_of(found, new_id=False)
    moved = signature(found)
    second = copy.deepcopy(moved.findall("ds:SignedInfo", NS)[0])
    digest = hashlib.sha256(etree.tostring(evil, method="c14n", exclusive=True)).digest()
    second.findall(".//ds:DigestValue", NS)[0].text = base64.b64encode(digest).decode()
    moved.append(second)
    evil.insert(1, moved)
    root.replace(found, evil)
    return root


def encrypted(provider: SamlProvider, asked: Asked) -> Element:
    root = provider.unsigned(asked)
    root.remove(inner(root))
    etree.SubElement(root, f"{{{SAML}}}EncryptedAssertion")
    return provider.key.sign(root)


ADA = f"ada@{DOMAIN}"
DTD = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip
CONFIRMATION = ".//saml:SubjectConfirmationData"
FORGERIES: dict[str, Forge] = {
    "XSW1": wrapped(xsw1, "response"),
    "XSW2": wrapped(xsw2, "response"),
    "XSW3": wrapped(xsw3),
    "XSW4": wrapped(xsw4),
    "XSW5": wrapped(xsw5),
    "XSW6": wrapped(xsw6),
    "XSW7": wrapped(xsw7),
    "XSW8": wrapped(xsw8),
    "XSW3 with the same ID": wrapped(same_id(xsw3)),
    "XSW4 with the same ID": wrapped(same_id(xsw4)),
    "XSW5 with the same ID": wrapped(same_id(xsw5)),
    "XSW6 with the same ID": wrapped(same_id(xsw6)),
    "XSW8 with the same ID": wrapped(same_id(xsw8)),
    "evil assertion with an Id": wrapped(lower_id),
    "signed response inside of an evil one": wrapped(inside_a_response, "response"),
    "assertion injected into a signed response": wrapped(xsw3, "response"),
    "assertion injected where both are signed": wrapped(xsw3, "both"),
    "unsigned": unsigned,
    "signature removed": wrapped(lambda root: evil_of(root)),
    "empty signature": wrapped(empty_signature),
    "signature cut off": text(re.compile(r"<ds:SignatureValue>[^<]*"), "<ds:SignatureValue>"),
    "name changed after signing": text(">00u1<", ">boss<"),
    "address changed after signing": text(ADA, BOSS),
    "address changed in a signed response": text(ADA, BOSS, "response"),
    "digest changed with it": wrapped(changed_digest),
    "second SignedInfo": wrapped(two_digests),
    "comment in the digest": text("<ds:DigestValue>", "<ds:DigestValue><!--x-->"),
    "signed by another key": by(OTHER_KEY),
    "another key, the known certificate in KeyInfo": borrowed,
    "HMAC with the certificate as PEM": hmac_signed(KEY.pem.encode()),
    "HMAC with the certificate as DER": hmac_signed(base64.b64decode(KEY.bare)),
    "HMAC with nothing": hmac_signed(b""),
    "algorithm none": algorithm("none"),
    "algorithm empty": algorithm(""),
    "SHA-1 signature": signed_with(signature_algorithm=SignatureMethod.RSA_SHA1),
    "SHA-1 digest": signed_with(digest_algorithm=DigestAlgorithm.SHA1),
    "canonical form with comments": signed_with(
        c14n_algorithm=CanonicalizationMethod.EXCLUSIVE_XML_CANONICALIZATION_1_0_WITH_COMMENTS
    ),
    "transform by XSLT": text(
        "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
        "http://www.w3.org/TR/1999/REC-xslt-19991116",
    ),
    "transform by XPath": text(
        "http://www.w3.org/2000/09/xmldsig#enveloped-signature",
        "http://www.w3.org/TR/1999/REC-xpath-19991116",
    ),
    "reference to everything": text(re.compile(r'URI="#[^"]*"'), 'URI=""'),
    "reference to an address": text(re.compile(r'URI="#[^"]*"'), 'URI="https://evil.example/x.xml"'),
    "reference to a file": text(re.compile(r'URI="#[^"]*"'), 'URI="file:///etc/passwd"'),
    "relative namespace": text("<saml:Subject>", '<saml:Subject xmlns:x="relative">'),
    "comment in the name": text(">00u1<", ">00u<!---->1<"),
    "comment in the address": text(ADA, f"{BOSS}<!---->.evil.example"),
    "instruction in the name": text(">00u1<", ">00u<?x?>1<"),
    "CDATA in the name": text(">00u1<", "><![CDATA[00u1]]><"),
    "external entity": lambda p, a: DTD.encode() + etree.tostring(p.respond(a)).replace(b">00u1<", b">&a;<"),
    "billion laughs": lambda p, a: BOMB.encode() + etree.tostring(p.respond(a)).replace(b">00u1<", b">&i;<"),
    "document type alone": lambda p, a: b"<!DOCTYPE x>" + etree.tostring(p.respond(a)),
    "UTF-16": lambda p, a: etree.tostring(p.respond(a), encoding="UTF-16"),
    "UTF-7 by declaration": lambda p, a: b'<?xml version="1.0" encoding="UTF-7"?>' + etree.tostring(p.respond(a)),
    "two declarations": lambda p, a: b"<?xml version='1.0'?><?xml version='1.0'?>" + etree.tostring(p.respond(a)),
    "thousand levels": lambda p, a: b"<a>" * 3000 + b"</a>" * 3000,
    "six thousand elements": lambda p, a: b"<a>" + b"<b/>" * 6000 + b"</a>",
    "not XML": lambda p, a: b"hello",
    "nothing": lambda p, a: b"",
    "an assertion alone": lambda p, a: inner(p.respond(a)),
    "no assertion": before_signing(dropped("saml:Assertion"), "response"),
    "encrypted assertion": encrypted,
    "another audience": before_signing(said(".//saml:Audience", "https://else.example")),
    "audience with a slash more": before_signing(slashed),
    "no audience": before_signing(dropped(".//saml:AudienceRestriction")),
    "second audience restriction": before_signing(
        doubled(".//saml:AudienceRestriction", ".//saml:Audience", "https://else.example")
    ),
    "no conditions": before_signing(dropped(".//saml:Conditions")),
    "two conditions": before_signing(doubled(".//saml:Conditions")),
    "unknown condition": before_signing(added(".//saml:Conditions", f"{{{SAML}}}Condition")),
    "another recipient": before_signing(put(CONFIRMATION, "Recipient", "https://else.example/acs")),
    "no recipient": before_signing(put(CONFIRMATION, "Recipient", None)),
    "another destination": before_signing(put(".", "Destination", "https://else.example/acs")),
    "another destination, signed": before_signing(put(".", "Destination", "https://else.example"), "both"),
    "no destination": before_signing(put(".", "Destination", None)),
    "another issuer": before_signing(said(".//saml:Assertion/saml:Issuer", "https://evil.example")),
    "response of another issuer": before_signing(said("./saml:Issuer", "https://evil.example")),
    "no issuer": before_signing(dropped(".//saml:Assertion/saml:Issuer")),
    "expired": before_signing(put(".//saml:Conditions", "NotOnOrAfter", at(minutes=-2))),
    "no end": before_signing(put(".//saml:Conditions", "NotOnOrAfter", None)),
    "end is text": before_signing(put(".//saml:Conditions", "NotOnOrAfter", "tomorrow")),
    "end in another zone": before_signing(put(".//saml:Conditions", "NotOnOrAfter", "2099-01-01T00:00:00+14:00")),
    "not valid yet": before_signing(put(".//saml:Conditions", "NotBefore", at(minutes=5))),
    "confirmation expired": before_signing(put(CONFIRMATION, "NotOnOrAfter", at(minutes=-2))),
    "confirmation without end": before_signing(put(CONFIRMATION, "NotOnOrAfter", None)),
    "confirmation not valid yet": before_signing(put(CONFIRMATION, "NotBefore", at(minutes=5))),
    "made long ago": before_signing(put("saml:Assertion", "IssueInstant", at(hours=-1))),
    "made in the future": before_signing(put("saml:Assertion", "IssueInstant", at(minutes=5))),
    "session at the provider ended": before_signing(
        put(".//saml:AuthnStatement", "SessionNotOnOrAfter", at(minutes=-5))
    ),
    "nobody signed in": before_signing(dropped(".//saml:AuthnStatement")),
    "holder of key": before_signing(
        put(".//saml:SubjectConfirmation", "Method", "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key")
    ),
    "two confirmations": before_signing(doubled(".//saml:SubjectConfirmation")),
    "two subjects": before_signing(doubled(".//saml:Subject")),
    "two names": before_signing(doubled(".//saml:NameID")),
    "no name": before_signing(said(".//saml:NameID", "")),
    "name with elements": before_signing(added(".//saml:NameID", "b", "x")),
    "name that changes each time": before_signing(
        put(".//saml:NameID", "Format", "urn:oasis:names:tc:SAML:2.0:nameid-format:transient")
    ),
    "status of a failure": before_signing(
        put(".//samlp:StatusCode", "Value", "urn:oasis:names:tc:SAML:2.0:status:Requester")
    ),
    "no status": before_signing(dropped(".//samlp:Status")),
    "SAML 1.1": before_signing(put(".", "Version", "1.1")),
    "assertion of SAML 1.1": before_signing(put("saml:Assertion", "Version", "1.1")),
    "began at the provider": before_signing(
        all_of(put(".", "InResponseTo", None), put(CONFIRMATION, "InResponseTo", None))
    ),
    "answer to another request": before_signing(
        all_of(put(".", "InResponseTo", "_x"), put(CONFIRMATION, "InResponseTo", "_x"))
    ),
    "answers two requests": before_signing(put(".", "InResponseTo", "_other")),
    "email of another domain": before_signing(said(".//saml:AttributeValue", "ada@evil.example")),
    "email of a domain below": before_signing(said(".//saml:AttributeValue", f"ada@sub.{DOMAIN}")),
    "two emails": before_signing(doubled(".//saml:AttributeValue", ".//saml:AttributeValue", BOSS)),
    "no email": before_signing(dropped(".//saml:AttributeStatement")),
}  # fmt: skip


def test_forged_answers_let_nobody_in(door: SamlDoor):
    """All in one: each case costs a sign-in, and no workspace of its own."""
    seen: dict[str, int] = {}
    for name, forge in FORGERIES.items():
        AttemptWindow.objects.all().delete()
        asked = door.begin()
        door.provider = SamlProvider(attributes={"email": [ADA]})
        forged = forge(door.provider, asked)
        seen[name] = door.fetch(door.post(forged, asked.state)).status_code
    assert {name: status for name, status in seen.items() if status not in {400, 403}} == {}
    assert not door.is_in()
    assert "_auth_user_id" not in door.browser.session
    assert not User.objects.filter(email=ADA).exists()
    door.provider = SamlProvider(attributes={"email": [ADA]})
    assert door.sign_in().status_code == 302, "the honest one gets in through the same door"


def reason(door: SamlDoor) -> str:
    with platform_scope():
        event = AuditEvent.objects.filter(tenant=door.tenant, action="sso.refuse").latest("pk")
    return str(event.data["reason"])


REASONS = {
    "XSW3": "2 assertions",
    "XSW8": "two of its elements|2 assertions|where none belongs",
    "unsigned": "neither",
    "address changed after signing": "Digest mismatch",
    "signed by another key": "signature of the Assertion is wrong",
    "SHA-1 signature": "RSA_SHA1 forbidden",
    "SHA-1 digest": "SHA1 forbidden",
    "comment in the address": "comments",
    "external entity": "document type",
    "billion laughs": "document type",
    "another audience": "another audience",
    "another recipient": "Recipient",
    "another destination": "Destination",
    "expired": "expired",
    "not valid yet": "valid yet",
    "encrypted assertion": "Turn off encryption",
    "began at the provider": "began this sign-in itself",
    "name that changes each time": "name ID format",
}


def test_attacks_fail_for_what_they_are(door: SamlDoor):
    """A test of the test: none is refused because it was made wrongly."""
    for name, expected in REASONS.items():
        AttemptWindow.objects.all().delete()
        asked = door.begin()
        door.provider = SamlProvider(attributes={"email": [ADA]})
        door.post(FORGERIES[name](door.provider, asked), asked.state)
        assert re.search(expected, reason(door)), (name, reason(door))


def test_name_with_a_comment_is_the_whole_name(door: SamlDoor):
    """The comment attack on a name ID that the attacker really has at the provider."""
    door.provider.form, door.provider.attributes = EMAIL, {}
    door.provider.name_id = f"{BOSS}.evil.example"
    asked = door.begin()
    honest = etree.tostring(door.provider.respond(asked)).decode()
    forged = honest.replace(f"{BOSS}.evil.example", f"{BOSS}<!---->.evil.example")
    assert door.fetch(door.post(forged.encode(), asked.state)).status_code == 403
    assert door.fetch(door.post(honest.encode(), asked.state)).status_code == 403
    assert not door.is_in()


def test_assertion_counts_once(door: SamlDoor):
    asked = door.begin()
    response = door.provider.respond(asked)
    posted = door.post(response, asked.state)
    assert door.fetch(posted).status_code == 302
    assert door.fetch(posted).status_code == 400, "the same way back again"
    again = door.begin(Client())
    assert door.post(response, again.state).status_code == 403
    assert reason(door) == "This assertion was used before."
    assert door.answers() == 1


def test_assertion_counts_once_over_connections_of_the_database(door: SamlDoor):
    """As another process sees it: what makes it unique is the table, not a memory."""
    one = Said({"sub": "x"}, "_a", "_r")
    answer_keep(connection=door.row, said=one)
    with pytest.raises(ProviderFailed, match="used before"), transaction.atomic():
        answer_keep(connection=door.row, said=one)


def test_claims_are_taken_once(door: SamlDoor):
    token = answer_keep(connection=door.row, said=Said({"sub": "x"}, "_a", "_r"))
    assert answer_take(connection=door.row, token=token, request_id="_r") == {"sub": "x"}
    for request_id in ("_r", "_s", ""):
        with pytest.raises(Exception, match="no sign-in of this browser"):
            answer_take(connection=door.row, token=token, request_id=request_id)


def test_answer_of_another_browser_lets_nobody_in(door: SamlDoor):
    """Login CSRF: an attacker has their answer posted by somebody else's browser."""
    mine = Client()
    asked = door.begin(mine)
    victim = Client()
    door.begin(victim)
    assert door.fetch(door.post(door.provider.respond(asked), asked.state), victim).status_code == 400
    assert not door.is_in(victim)


def test_answer_to_one_request_under_the_state_of_another_lets_nobody_in(door: SamlDoor):
    """A stolen assertion, under the state of the thief's own request."""
    stolen = door.provider.respond(door.begin(Client()))
    own = door.begin()
    assert door.fetch(door.post(stolen, own.state)).status_code == 400
    assert not door.is_in()


@pytest.mark.parametrize("state", ["", "x" * 43, "x" * 81, "https://evil.example/", "a\nb"])
def test_made_up_state_lets_nobody_in(state: str, door: SamlDoor):
    asked = door.begin()
    answer = door.fetch(door.post(door.provider.respond(asked), state))
    assert answer.status_code == 400
    assert not door.is_in()


def test_made_up_token_lets_nobody_in(door: SamlDoor):
    asked = door.begin()
    path = reverse("sso:answer", args=[door.tenant.slug, door.row.pk])
    for token in ("", "x" * 43):
        assert door.browser.get(path, {"state": asked.state, "answer": token}).status_code == 400


def test_answer_of_one_workspaces_provider_opens_no_other(door: SamlDoor, cast: Cast):
    """Mix-up: B trusts the same provider; its own assertion for A is posted at B, and the other way round."""
    evil = SamlDoor(cast, tenant=cast.other_tenant)
    domain_have(cast.other_tenant, evil.actor, "other.example")
    for own, other in ((door, evil), (evil, door)):
        browser = Client()
        asked, meant = own.begin(browser), other.begin(browser)
        response = own.provider.respond(asked)
        assert own.post(response, meant.state, to=other.acs).status_code == 403
        assert not other.is_in(browser)
        moved = SamlProvider(attributes={"email": [ADA]}).respond(
            Asked(asked.id, asked.audience, meant.address, meant.state)
        )
        assert other.post(moved, meant.state).status_code == 403, "addressed there, but for another audience"


def test_answer_of_another_provider_of_the_workspace_is_refused(door: SamlDoor):
    second = saml_connection_set(
        tenant=door.tenant, actor=door.actor, name="B",
        metadata=SamlProvider(issuer="https://b.example", key=OTHER_KEY).metadata(),
    )  # fmt: skip
    path = reverse("sso:acs", args=[door.tenant.slug, second.pk])
    asked = door.begin()
    assert door.post(door.provider.respond(asked), asked.state, to=path).status_code == 403
    with platform_scope():
        assert not SamlAnswer.objects.exists()


def test_owner_of_one_workspace_cannot_speak_for_another_domain(door: SamlDoor, cast: Cast):
    evil = SamlDoor(cast, tenant=cast.other_tenant)
    evil.provider.attributes = {"email": [BOSS]}
    assert evil.sign_in().status_code == 403
    assert not evil.is_in()


def test_certificate_that_expired_signs_nothing(door: SamlDoor):
    old = SamlKey(days=-1)
    door.set(certificates=KEY.pem + old.pem)
    door.provider.key = old
    assert door.sign_in().status_code == 403
    assert "expired" in reason(door).lower() or "signature" in reason(door)


def test_huge_answers_are_refused_unread(door: SamlDoor):
    asked = door.begin()
    assert door.post("A" * (MAX_RESPONSE + 4), asked.state).status_code == 403
    assert "too large" in reason(door)
    assert door.post("A" * 6_000_000, asked.state).status_code in {400, 413}


@pytest.mark.parametrize("data", ["%%%", "AAA", "<xml/>", "é"])
def test_what_is_not_base64_is_refused(data: str, door: SamlDoor):
    asked = door.begin()
    assert door.post(data, asked.state).status_code == 403


def test_fields_that_are_missing_or_doubled_are_refused(door: SamlDoor):
    asked = door.begin()
    response = encoded(door.provider.respond(asked))
    for form in (
        {}, {"RelayState": asked.state}, {"SAMLResponse": response},
        {"SAMLResponse": [response, response], "RelayState": asked.state},
        {"SAMLResponse": response, "RelayState": [asked.state, "x"]},
    ):  # fmt: skip
        assert Client().post(door.acs, form).status_code == 403


def test_answer_by_get_is_refused(door: SamlDoor):
    assert Client().get(door.acs).status_code == 405


def test_openid_provider_takes_no_assertion(door: SamlDoor, cast: Cast):
    with platform_scope():
        door.row.__class__.objects.filter(pk=door.row.pk).update(protocol="oidc")
    answer = Client(raise_request_exception=False).post(door.acs, {"SAMLResponse": "x", "RelayState": "x"})
    assert answer.status_code == 404


def test_switched_off_provider_takes_nothing(door: SamlDoor):
    asked = door.begin()
    response = door.provider.respond(asked)
    door.set(is_enabled=False)
    assert door.post(response, asked.state).status_code == 404


def test_session_of_before_is_not_kept(door: SamlDoor):
    door.begin()
    before = door.browser.cookies["sessionid"].value
    door.sign_in()
    stale = Client()
    stale.cookies["sessionid"] = before
    assert not door.is_in(stale)


def test_too_many_answers_are_slowed(door: SamlDoor):
    answers = [Client().post(door.acs, {}).status_code for _ in range(31)]
    assert answers.count(403) == 30
    assert answers[-1] == 429


def test_reasons_are_told_to_owners_alone(door: SamlDoor):
    asked = door.begin()
    page = door.post(unsigned(door.provider, asked), asked.state).content.decode()
    assert "neither" not in page
    assert "sso_signature" in page
    assert "neither" in reason(door)


def test_forged_xml_never_reaches_the_log_whole(door: SamlDoor):
    """What a stranger posts isn't stored: reasons are cut short."""
    asked = door.begin()
    door.provider.change = put(".", "Destination", "x" * 5000)
    door.post(door.provider.respond(asked), asked.state)
    assert len(reason(door)) <= 300
