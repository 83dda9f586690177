"""What a forger does to a SAML response: wraps what is signed, changes words, signs with keys and algorithms of their own.

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

from lxml import etree
from signxml.algorithms import CanonicalizationMethod, DigestAlgorithm, SignatureMethod
from signxml.signer import XMLSigner

from tests.sso.provider import DOMAIN
from tests.sso.saml_provider import (
    DS,
    KEY,
    NS,
    OTHER_KEY,
    SAML,
    SAMLP,
    Asked,
    SamlKey,
    SamlProvider,
    iso,
)

BOSS = f"boss@{DOMAIN}"
Element = Any
Forge = Callable[[SamlProvider, Asked], Element | bytes]


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
