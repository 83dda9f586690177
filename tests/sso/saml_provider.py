"""A SAML provider that signs real responses, and forges when it is told to.

The attacks are made with lxml alone, on responses that were signed as providers sign them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.signer import XMLSigner

SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
MD = "urn:oasis:names:tc:SAML:2.0:metadata"
DS = "http://www.w3.org/2000/09/xmldsig#"
NS = {"saml": SAML, "samlp": SAMLP, "ds": DS}
EMAIL = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
ISSUER, SSO = "https://idp.acme.example/saml", "https://idp.acme.example/sso"
Change = Callable[[Any], None]


class SamlKey:
    """A signing key and its certificate."""

    def __init__(self, *, curve: bool = False, bits: int = 2048, days: int = 365) -> None:
        self.private: Any = (
            ec.generate_private_key(ec.SECP256R1()) if curve else rsa.generate_private_key(65537, bits)
        )
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.acme.example")])
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self.private.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=days))
            .sign(self.private, hashes.SHA256())
        )
        self.method = SignatureMethod.ECDSA_SHA256 if curve else SignatureMethod.RSA_SHA256

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def bare(self) -> str:
        return "".join(self.pem.splitlines()[1:-1])

    def sign(self, element: Any, *, signer: XMLSigner | None = None) -> Any:
        """Return the element signed as SAML has it: the signature follows the issuer."""
        # The prefix is given: lxml would give it another one when elements move, and the signature covers prefixes.
        place = etree.Element(f"{{{DS}}}Signature", nsmap={"ds": DS}, Id="placeholder")
        issuer = element.find("saml:Issuer", NS)
        element.insert(0 if issuer is None else 1, place)
        signer = signer or XMLSigner(
            signature_algorithm=self.method,
            digest_algorithm=DigestAlgorithm.SHA256,
            c14n_algorithm="http://www.w3.org/2001/10/xml-exc-c14n#",
        )
        return signer.sign(
            element, key=self.private, cert=[self.certificate], reference_uri=f"#{element.get('ID')}"
        )


KEY, OTHER_KEY = SamlKey(), SamlKey()


def iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Asked:
    """What a request to sign in says."""

    id: str
    audience: str
    address: str
    state: str

    @classmethod
    def of(cls, url: str) -> Asked:
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        root = etree.fromstring(zlib.decompress(base64.b64decode(query["SAMLRequest"]), -15))
        assert root.tag == f"{{{SAMLP}}}AuthnRequest"
        assert root.get("Destination") == url.partition("?")[0]
        audience = root.findtext("saml:Issuer", None, NS)
        return cls(
            root.get("ID", ""),
            audience or "",
            root.get("AssertionConsumerServiceURL", ""),
            query["RelayState"],
        )


@dataclass
class SamlProvider:
    """A provider. What is set on it is what it says.

    Attributes:
        signs: "assertion", "response" or "both".
        change: done to the response before it is signed.
    """

    issuer: str = ISSUER
    name_id: str = "00u1"
    form: str = PERSISTENT
    attributes: dict[str, list[str]] = field(default_factory=dict)
    key: SamlKey = KEY
    signs: str = "assertion"
    change: Change | None = None
    signer: XMLSigner | None = None

    def metadata(self, *keys: SamlKey) -> str:
        described = "".join(
            f'<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="{DS}"><ds:X509Data><ds:X509Certificate>'
            f"{key.bare}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
            for key in keys or (self.key,)
        )
        return (
            f'<?xml version="1.0" encoding="UTF-8"?><!-- made by a provider -->'
            f'<md:EntityDescriptor xmlns:md="{MD}" entityID="{self.issuer}">'
            f'<md:IDPSSODescriptor protocolSupportEnumeration="{SAMLP}">{described}'
            f'<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="{SSO}/p"/>'
            f'<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="{SSO}"/>'
            f"</md:IDPSSODescriptor></md:EntityDescriptor>"
        )

    def unsigned(self, asked: Asked) -> Any:
        """Return the response to a request, before it is signed."""
        now = datetime.now(UTC)
        soon = iso(now + timedelta(minutes=5))
        root = etree.Element(f"{{{SAMLP}}}Response", nsmap={"samlp": SAMLP, "saml": SAML})
        for name, value in {
            "ID": f"_{uuid4().hex}", "Version": "2.0", "IssueInstant": iso(now), "Destination": asked.address,
            "InResponseTo": asked.id,
        }.items():  # fmt: skip
            root.set(name, value)
        etree.SubElement(root, f"{{{SAML}}}Issuer").text = self.issuer
        status = etree.SubElement(root, f"{{{SAMLP}}}Status")
        etree.SubElement(status, f"{{{SAMLP}}}StatusCode", Value="urn:oasis:names:tc:SAML:2.0:status:Success")
        one = etree.SubElement(
            root, f"{{{SAML}}}Assertion", ID=f"_{uuid4().hex}", Version="2.0", IssueInstant=iso(now)
        )
        etree.SubElement(one, f"{{{SAML}}}Issuer").text = self.issuer
        subject = etree.SubElement(one, f"{{{SAML}}}Subject")
        etree.SubElement(subject, f"{{{SAML}}}NameID", Format=self.form).text = self.name_id
        confirmation = etree.SubElement(
            subject, f"{{{SAML}}}SubjectConfirmation", Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"
        )
        etree.SubElement(
            confirmation,
            f"{{{SAML}}}SubjectConfirmationData",
            InResponseTo=asked.id,
            Recipient=asked.address,
            NotOnOrAfter=soon,
        )
        conditions = etree.SubElement(
            one, f"{{{SAML}}}Conditions", NotBefore=iso(now - timedelta(minutes=1)), NotOnOrAfter=soon
        )
        restriction = etree.SubElement(conditions, f"{{{SAML}}}AudienceRestriction")
        etree.SubElement(restriction, f"{{{SAML}}}Audience").text = asked.audience
        statement = etree.SubElement(one, f"{{{SAML}}}AuthnStatement", AuthnInstant=iso(now))
        context = etree.SubElement(statement, f"{{{SAML}}}AuthnContext")
        etree.SubElement(
            context, f"{{{SAML}}}AuthnContextClassRef"
        ).text = "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport"
        described = etree.SubElement(one, f"{{{SAML}}}AttributeStatement")
        for name, values in self.attributes.items():
            attribute = etree.SubElement(described, f"{{{SAML}}}Attribute", Name=name)
            for value in values:
                etree.SubElement(attribute, f"{{{SAML}}}AttributeValue").text = value
        return root

    def respond(self, asked: Asked) -> Any:
        """Return the signed response to a request."""
        root = self.unsigned(asked)
        if self.change:
            self.change(root)
        if self.signs in {"assertion", "both"}:
            inner = root.find("saml:Assertion", NS)
            assert inner is not None
            root.replace(inner, self.key.sign(inner, signer=self.signer))
        if self.signs in {"response", "both"}:
            root = self.key.sign(root, signer=self.signer)
        return root


def encoded(root: Any | bytes) -> str:
    data = root if isinstance(root, bytes) else etree.tostring(root)
    return base64.b64encode(data).decode()
