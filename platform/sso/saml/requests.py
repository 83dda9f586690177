"""What we say to a SAML provider: a request to sign somebody in (HTTP-Redirect binding, Bindings 3.4), and our metadata."""

from __future__ import annotations

import base64
import zlib
from datetime import datetime
from urllib.parse import urlencode, urlsplit

from lxml import etree

from sso.saml.documents import ASSERTION, METADATA, PROTOCOL

POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"


def request_url(
    *, sso_url: str, entity_id: str, address: str, request_id: str, state: str, now: datetime
) -> str:
    """Return where the browser is sent.

    Args:
        sso_url: of the provider.
        entity_id: ours.
        address: our assertion consumer service.
        request_id: begins with a letter or "_" (XML's NCName).
    """
    root = etree.Element(f"{{{PROTOCOL}}}AuthnRequest", nsmap={"samlp": PROTOCOL, "saml": ASSERTION})
    root.set("ID", request_id)
    root.set("Version", "2.0")
    root.set("IssueInstant", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    root.set("Destination", sso_url)
    root.set("ProtocolBinding", POST)
    root.set("AssertionConsumerServiceURL", address)
    etree.SubElement(root, f"{{{ASSERTION}}}Issuer").text = entity_id
    packed = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    data = packed.compress(etree.tostring(root)) + packed.flush()
    mark = "&" if urlsplit(sso_url).query else "?"
    values = {"SAMLRequest": base64.b64encode(data).decode(), "RelayState": state}
    return f"{sso_url}{mark}{urlencode(values)}"


def own_metadata(*, entity_id: str, address: str) -> bytes:
    """Return our metadata: what a provider needs to know of a workspace's connection."""
    root = etree.Element(f"{{{METADATA}}}EntityDescriptor", nsmap={"md": METADATA}, entityID=entity_id)
    role = etree.SubElement(
        root,
        f"{{{METADATA}}}SPSSODescriptor",
        AuthnRequestsSigned="false",
        WantAssertionsSigned="true",
        protocolSupportEnumeration=PROTOCOL,
    )
    for form in ("nameid-format:persistent", "nameid-format:emailAddress"):
        version = "1.1" if form.endswith("emailAddress") else "2.0"
        etree.SubElement(
            role, f"{{{METADATA}}}NameIDFormat"
        ).text = f"urn:oasis:names:tc:SAML:{version}:{form}"
    etree.SubElement(
        role,
        f"{{{METADATA}}}AssertionConsumerService",
        Binding=POST,
        Location=address,
        index="0",
        isDefault="true",
    )
    said: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return said
