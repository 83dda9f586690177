"""Over 120 forged SAML responses by name: each says what is wrong with it."""

from __future__ import annotations

import base64
import re

from lxml import etree
from signxml.algorithms import CanonicalizationMethod, DigestAlgorithm, SignatureMethod

from tests.sso.provider import DOMAIN
from tests.sso.saml_forging import (
    BOSS,
    Forge,
    added,
    algorithm,
    all_of,
    at,
    before_signing,
    borrowed,
    by,
    changed_digest,
    doubled,
    dropped,
    empty_signature,
    encrypted,
    evil_of,
    hmac_signed,
    inner,
    inside_a_response,
    lower_id,
    put,
    said,
    same_id,
    signed_with,
    slashed,
    text,
    two_digests,
    unsigned,
    wrapped,
    xsw1,
    xsw2,
    xsw3,
    xsw4,
    xsw5,
    xsw6,
    xsw7,
    xsw8,
)
from tests.sso.saml_provider import (
    KEY,
    OTHER_KEY,
    SAML,
)

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
