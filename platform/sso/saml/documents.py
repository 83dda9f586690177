"""XML from outside, read so that nothing in it can be seen in two ways.

What a signature covers and what is read must be the same. Most holes of SAML come from documents that are one thing to who
verifies and another to who reads (comments, entities, CDATA, encodings). A signed document is therefore refused whole when
it holds any of these: honest identity providers write none of them.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

from sso.fetching import ProviderFailed

PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol"
ASSERTION = "urn:oasis:names:tc:SAML:2.0:assertion"
METADATA = "urn:oasis:names:tc:SAML:2.0:metadata"
DS = "http://www.w3.org/2000/09/xmldsig#"
NAMESPACES = {"samlp": PROTOCOL, "saml": ASSERTION, "md": METADATA, "ds": DS}
MAX_ELEMENTS = 5000
Element = Any
"""lxml's element; the library has no types."""
_DECLARATION = re.compile(r"\A\ufeff?\s*<\?xml\s([^<>?]*)\?>")
_ENCODING = re.compile(r"""encoding\s*=\s*["']([^"']*)["']""")
_ENCODINGS = {"utf-8", "utf8", "us-ascii", "ascii"}
_DOCTYPE = re.compile(r"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def document_parse(data: bytes, what: str, *, is_signed: bool = True) -> Element:
    """Return the root of a document.

    Args:
        data: UTF-8; its size is the caller's to limit.
        what: what it is, for messages.
        is_signed: refuse comments, CDATA and processing instructions too. In metadata, which an owner enters, comments and
            instructions are dropped instead.

    Raises:
        ProviderFailed: it isn't XML, or holds something that isn't taken.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _bad(what, "it isn't UTF-8") from error
    declared = _DECLARATION.match(text)
    if declared:
        encoding = _ENCODING.search(declared[1])
        if encoding and encoding[1].lower() not in _ENCODINGS:
            raise _bad(what, f"its encoding is {encoding[1][:20]}, not UTF-8")
        text = text[declared.end() :]
    if _DOCTYPE.search(text):
        raise _bad(what, "it has a document type or entities")
    if is_signed and ("<!" in text or "<?" in text):
        raise _bad(what, "it has comments, CDATA or processing instructions")
    try:
        root = etree.fromstring(text.strip().encode(), parser=parser())
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _bad(what, "it isn't well-formed XML") from error
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS:
        raise _bad(what, f"it has more than {MAX_ELEMENTS:,} elements")
    return root


def parser() -> Any:
    """Return a parser that fetches nothing, expands nothing, and keeps libxml2's limits on depth and size."""
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def found(element: Element, path: str) -> list[Element]:
    """Return the elements at a path, with the prefixes samlp, saml, md and ds."""
    rows: list[Element] = element.findall(path, NAMESPACES)
    return rows


def text_of(element: Element) -> str:
    """Return the text of an element that holds nothing but text, "" for any other."""
    return "" if len(element) else (element.text or "").strip()


def _bad(what: str, why: str) -> ProviderFailed:
    return ProviderFailed("sso_saml", f"{what}: {why}.")
