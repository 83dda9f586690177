"""What somebody wrote into a PDF on top of its pages: values of form fields and notes. PDFium's page text has neither."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.base import clean_text

_MOST = 5_000  # annotations of one page
_MOST_CHARS = 100_000  # of one value
_PASSWORD = 1 << 13  # PDF 32000-1, table 228: the flag of a field whose value is hidden
_BUTTONS = (pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON)
_VALUES = (
    *_BUTTONS,
    pdfium_c.FPDF_FORMFIELD_TEXTFIELD,
    pdfium_c.FPDF_FORMFIELD_COMBOBOX,
    pdfium_c.FPDF_FORMFIELD_LISTBOX,
)
_NO_NOTES = (pdfium_c.FPDF_ANNOT_POPUP, pdfium_c.FPDF_ANNOT_LINK, pdfium_c.FPDF_ANNOT_WIDGET)


@dataclass(frozen=True, slots=True)
class Written:
    """A field's value or a note.

    Attributes:
        text: one line or more, with the field's or the author's name before it.
        rect: left, bottom, right, top in the page's own coordinates.
    """

    text: str
    rect: tuple[float, float, float, float]


def page_written(document: Any, page: Any) -> list[Written]:
    """List the filled fields and the notes of a page, in the order of the file.

    Args:
        document: PDFium's, with ``init_forms`` called before the page was opened, where it has a form.
        page: PDFium's.
    """
    found: list[Written] = []
    seen: set[str] = set()
    count = min(int(pdfium_c.FPDFPage_GetAnnotCount(page.raw)), _MOST)
    form = document.formenv.raw if document.formenv is not None else None
    for index in range(count):
        annotation = pdfium_c.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = pdfium_c.FPDFAnnot_GetSubtype(annotation)
            if kind == pdfium_c.FPDF_ANNOT_WIDGET:
                text = _field(form, annotation) if form is not None else ""
            else:
                text = "" if kind in _NO_NOTES else _note(annotation)
            if text and text not in seen:  # a field may stand on its page twice
                seen.add(text)
                found.append(Written(text, _rect(annotation)))
        finally:
            pdfium_c.FPDFPage_CloseAnnot(annotation)
    return found


def written_text(written: list[Written]) -> str:
    """Return what goes behind a page's text, "" if there is nothing."""
    return "".join(f"\n{one.text}" for one in written)


def _field(form: Any, annotation: Any) -> str:
    kind = pdfium_c.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind not in (*_VALUES, pdfium_c.FPDF_FORMFIELD_SIGNATURE):
        return ""
    name = _told(pdfium_c.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = name or _told(pdfium_c.FPDFAnnot_GetFormFieldName, form, annotation)
    if kind == pdfium_c.FPDF_FORMFIELD_SIGNATURE:
        # Whose it is stands in a certificate, and whether it holds is for a program that checks such.
        value = "signed" if pdfium_c.FPDFAnnot_HasKey(annotation, b"V") else ""
    elif kind in _BUTTONS:
        if not pdfium_c.FPDFAnnot_IsChecked(form, annotation):
            return ""
        value = _told(pdfium_c.FPDFAnnot_GetFormFieldExportValue, form, annotation) or "yes"
    elif kind in (pdfium_c.FPDF_FORMFIELD_COMBOBOX, pdfium_c.FPDF_FORMFIELD_LISTBOX):
        value = ", ".join(_chosen(form, annotation)) or _value(form, annotation)
    else:
        value = _value(form, annotation)
    if pdfium_c.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD and value:
        value = "(a password)"
    return f"{name}: {value}" if name and value else value


def _value(form: Any, annotation: Any) -> str:
    return _told(pdfium_c.FPDFAnnot_GetFormFieldValue, form, annotation)


def _chosen(form: Any, annotation: Any) -> list[str]:
    labels = []
    for index in range(min(_MOST, max(0, pdfium_c.FPDFAnnot_GetOptionCount(form, annotation)))):
        if pdfium_c.FPDFAnnot_IsOptionSelected(form, annotation, index):

            def label(form: Any, annotation: Any, buffer: Any, size: int, at: int = index) -> int:
                told: int = pdfium_c.FPDFAnnot_GetOptionLabel(form, annotation, at, buffer, size)
                return told

            labels.append(_told(label, form, annotation))
    return [text for text in labels if text]


def _note(annotation: Any) -> str:
    text = _string(annotation, b"Contents")
    author = _string(annotation, b"T")
    if not text:
        return ""
    return f"Note by {author}: {text}" if author else f"Note: {text}"


def _string(annotation: Any, key: bytes) -> str:
    def ask(_: Any, one: Any, buffer: Any, size: int) -> int:
        told: int = pdfium_c.FPDFAnnot_GetStringValue(one, key, buffer, size)
        return told

    return _told(ask, None, annotation)


def _told(ask: Callable[[Any, Any, Any, int], int], form: Any, annotation: Any) -> str:
    """Call one of PDFium's functions that fill a buffer with UTF-16 and return how many bytes that takes."""
    size = min(int(ask(form, annotation, None, 0)), _MOST_CHARS * 2)
    if size <= 2:
        return ""
    units = (pdfium_c.FPDF_WCHAR * (size // 2))()
    ask(form, annotation, units, size)
    text = bytes(units).decode("utf-16-le", errors="replace").split("\x00", 1)[0]
    return clean_text(text).strip()


def _rect(annotation: Any) -> tuple[float, float, float, float]:
    rect = pdfium_c.FS_RECTF()
    if not pdfium_c.FPDFAnnot_GetRect(annotation, ctypes.byref(rect)):
        return (0.0, 0.0, 0.0, 0.0)
    return (rect.left, rect.bottom, rect.right, rect.top)
