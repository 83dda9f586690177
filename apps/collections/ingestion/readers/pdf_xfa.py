"""Values of XFA forms: a PDF whose pages an Adobe program makes from XML, and which holds what was filled in as XML too."""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.base import clean_text
from apps.collections.ingestion.readers.package import xml_events
from apps.collections.ingestion.types import ReadFailure
from basics.texts import gettext_noop

READ = gettext_noop(
    "This PDF is an XFA form, which only Adobe's programs can display. The values filled in were read, "
    "but not the text printed around them. Print it to a PDF and upload that to get both."
)
UNREAD = gettext_noop(
    "This PDF is an XFA form, which only Adobe's programs can display. Neither its pages nor its "
    "values can be read. Print it to a PDF and upload that."
)
_MOST_BYTES = 20_000_000
_MOST_PACKETS = 100
_MOST_CHARS = 100_000  # of one value


def is_xfa(document: Any) -> bool:
    """Tell whether PDFium has only a placeholder for this document's pages; forms with drawn pages have fields too."""
    return bool(pdfium_c.FPDF_GetFormType(document.raw) == pdfium_c.FORMTYPE_XFA_FULL)


def xfa_values(document: Any) -> list[str]:
    """List the filled values, ``name: value`` each, in the order of the form's data; [] where there are none."""
    try:
        return _values(_packet(document, "datasets"))
    except ReadFailure:
        return []  # the document says so in a warning


def _values(data: bytes) -> list[str]:
    """Read the leaves below ``data`` (XFA 3.3, chapter 4): groups are of no use to a reader of lines."""
    found: list[str] = []
    path: list[str] = []
    text = ""
    is_leaf = False
    for event in xml_events(data, "form") if data else ():
        if event.kind == "start":
            path.append(event.name)
            text, is_leaf = "", True
        elif event.kind == "text":
            text += event.name if is_leaf and len(text) < _MOST_CHARS else ""
        else:
            value = clean_text(text).strip()
            if is_leaf and value and path[1:2] == ["data"]:
                found.append(f"{path[-1]}: {value}")
            path.pop()
            is_leaf = False
    return found


def _packet(document: Any, wanted: str) -> bytes:
    for index in range(min(int(pdfium_c.FPDF_GetXFAPacketCount(document.raw)), _MOST_PACKETS)):
        size = int(pdfium_c.FPDF_GetXFAPacketName(document.raw, index, None, 0))
        name = ctypes.create_string_buffer(max(1, min(size, 1000)))
        pdfium_c.FPDF_GetXFAPacketName(document.raw, index, name, len(name))
        if name.value.decode("utf-8", errors="replace") != wanted:
            continue
        length = ctypes.c_ulong()
        pdfium_c.FPDF_GetXFAPacketContent(document.raw, index, None, 0, ctypes.byref(length))
        if 0 < length.value <= _MOST_BYTES:
            content = ctypes.create_string_buffer(length.value)
            if pdfium_c.FPDF_GetXFAPacketContent(
                document.raw, index, content, length.value, ctypes.byref(length)
            ):
                return content.raw
    return b""
