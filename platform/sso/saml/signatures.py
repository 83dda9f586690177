"""Which assertion of a response its provider has signed: only what was digested is ever read.

XML Signature (https://www.w3.org/TR/xmldsig-core1/) lets a signature cover any part of a document, under transforms of its
own, by a key it brings along. SAML Core 5.4 allows one shape of it, and nothing else is taken here: one reference to the
element that holds the signature, the enveloped-signature transform, exclusive canonicalization, and SHA-2. Signatures are
verified by signxml, with certificates that the workspace has entered. Each signed element is verified as a document of its
own, so that nothing around it can be mistaken for it (signature wrapping, XSW1 to XSW8), and what is returned is parsed from
the bytes that were digested.
"""

from __future__ import annotations

from cryptography import x509
from lxml import etree
from signxml.algorithms import DigestAlgorithm, SignatureMethod
from signxml.exceptions import SignXMLException
from signxml.verifier import SignatureConfiguration, XMLVerifier

from sso.fetching import ProviderFailed
from sso.saml.documents import ASSERTION, DS, PROTOCOL, Element, document_parse, found, parser

RESPONSE = f"{{{PROTOCOL}}}Response"
SIGNED = f"{{{ASSERTION}}}Assertion"
SIGNATURE = f"{{{DS}}}Signature"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
TRANSFORMS = {"http://www.w3.org/2000/09/xmldsig#enveloped-signature", EXCLUSIVE}
_SHA2 = frozenset({DigestAlgorithm.SHA256, DigestAlgorithm.SHA384, DigestAlgorithm.SHA512})
_METHODS = frozenset(
    {
        SignatureMethod.RSA_SHA256, SignatureMethod.RSA_SHA384, SignatureMethod.RSA_SHA512,
        SignatureMethod.ECDSA_SHA256, SignatureMethod.ECDSA_SHA384, SignatureMethod.ECDSA_SHA512,
        SignatureMethod.SHA256_RSA_MGF1, SignatureMethod.SHA384_RSA_MGF1, SignatureMethod.SHA512_RSA_MGF1,
    }
)  # fmt: skip
_CONFIG = SignatureConfiguration(
    location="./", expect_references=1, signature_methods=_METHODS, digest_algorithms=_SHA2,
    ignore_ambiguous_key_info=True,
)  # fmt: skip
"""What the signature says of its own key plays no part: ``x509_cert`` is given, so nothing else is looked at."""


def assertion_verified(response: Element, certificates: list[x509.Certificate]) -> tuple[Element, Element]:
    """Return the response and its assertion, the latter as its provider has signed it.

    Where the response is signed, both are what was signed. Where only the assertion is, the response's own attributes are
    anybody's word, to be compared with what the assertion says.

    Raises:
        ProviderFailed: ``sso_signature``; the message says what doesn't fit.
    """
    if response.tag != RESPONSE:
        raise _unfit("it isn't a SAML response")
    _names_check(response)
    is_signed = bool(found(response, "./ds:Signature"))
    if is_signed:
        response = _verified(response, certificates)
    inner = _only_assertion(response)
    if found(inner, "./ds:Signature"):
        inner = _verified(inner, certificates)
    elif not is_signed:
        raise _unfit("neither it nor its assertion is signed")
    return response, inner


def _names_check(response: Element) -> None:
    """Refuse ids that are there twice, and signatures where SAML has none."""
    ids: list[str] = []
    for element in response.iter():
        ids += [
            value for name, value in element.attrib.items() if etree.QName(name).localname.lower() == "id"
        ]
        parent = element.getparent()
        if element.tag != SIGNATURE:
            continue
        is_inside = parent is not None and parent.tag == SIGNED and parent.getparent() is response
        if parent is not response and not is_inside:
            raise _unfit("there is a signature where none belongs")
    if len(ids) != len(set(ids)):
        raise _unfit("two of its elements have the same ID")


def _only_assertion(response: Element) -> Element:
    if list(response.iter(f"{{{ASSERTION}}}EncryptedAssertion", f"{{{ASSERTION}}}EncryptedID")):
        raise ProviderFailed(
            "sso_encrypted",
            "The assertion is encrypted, which isn't supported. Turn off encryption of assertions at the provider.",
        )
    direct, all_ = found(response, "./saml:Assertion"), list(response.iter(SIGNED))
    if len(direct) != 1 or len(all_) != 1:
        raise _unfit(f"it has {len(all_)} assertions, not one")
    return direct[0]


def _verified(element: Element, certificates: list[x509.Certificate]) -> Element:
    """Return an element as parsed from the bytes that its signature covers."""
    name = etree.QName(element).localname
    # lxml writes the namespaces in scope with it, so exclusive canonicalization finds the same bytes.
    alone = etree.tostring(element, with_tail=False)
    root = document_parse(alone, name)
    _shape_check(root)
    problem: Exception | None = None
    for certificate in certificates:
        try:
            result = XMLVerifier().verify(
                alone, x509_cert=certificate, parser=parser(), id_attribute="ID", expect_config=_CONFIG
            )
        except (SignXMLException, etree.LxmlError, ValueError, TypeError) as error:
            problem = error
            continue
        if isinstance(result, list):
            raise _unfit("its signature covers several things")
        signed = document_parse(result.signed_data, name)
        if signed.tag != element.tag or signed.get("ID") != element.get("ID"):
            raise _unfit("its signature covers something else")
        return signed
    why = str(problem).splitlines()[0][:160] if str(problem) else type(problem).__name__
    raise _unfit(f"the signature of the {name} is wrong ({why})") from problem


def _shape_check(root: Element) -> None:
    """Refuse a signature of any shape but SAML's own (Core 5.4)."""
    signatures = found(root, "./ds:Signature")
    if len(signatures) != 1:
        raise _unfit("it is signed several times")
    signature = signatures[0]
    references = found(signature, ".//ds:Reference")
    if len(references) != 1 or references[0].getparent() is not signature.find("ds:SignedInfo", {"ds": DS}):
        raise _unfit("its signature has no reference, or several")
    if found(signature, ".//ds:Object"):
        raise _unfit("its signature has an object inside")
    if not root.get("ID") or references[0].get("URI") != f"#{root.get('ID')}":
        raise _unfit("its signature covers something else")
    transforms = [one.get("Algorithm") for one in found(references[0], "./ds:Transforms/ds:Transform")]
    if sorted(map(str, transforms)) != sorted(TRANSFORMS):
        raise _unfit("its signature has transforms that aren't taken")
    methods = [one.get("Algorithm") for one in found(signature, "./ds:SignedInfo/ds:CanonicalizationMethod")]
    if methods != [EXCLUSIVE]:
        raise _unfit("its signature isn't in exclusive canonical form")


def _unfit(why: str) -> ProviderFailed:
    return ProviderFailed("sso_signature", f"The response doesn't fit: {why}.")
