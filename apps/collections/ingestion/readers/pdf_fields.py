"""What somebody wrote into a PDF on top of its pages: values of form fields and notes. PDFium's page text has neither."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium_c

from apps.collections.ingestion.readers.base import clean_text
from apps.collections.ingestion.readers.pdf_labels import PageLabels, Rect

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
_OFF = "Off"  # PDF 32000-1, 12.7.4.2.3: the state of a box that is not ticked
_NO_NOTES = (pdfium_c.FPDF_ANNOT_POPUP, pdfium_c.FPDF_ANNOT_LINK, pdfium_c.FPDF_ANNOT_WIDGET)


@dataclass(frozen=True, slots=True)
class Written:
    """A field's value or a note.

    Attributes:
        text: one line or more, with the field's label or the author's name before it.
        rect: left, bottom, right, top in the page's own coordinates.
    """

    text: str
    rect: Rect


@dataclass(frozen=True, slots=True)
class _Field:
    """A filled field: its name for programs, its title for people ("" if it has none), and its value."""

    name: str
    title: str
    value: str
    is_button: bool = False
    is_radio: bool = False

    @property
    def key(self) -> str:
        return self.name or self.title


def page_written(document: Any, page: Any) -> list[Written]:
    """List the filled fields and the notes of a page, in the order of the file.

    Args:
        document: PDFium's, with ``init_forms`` called before the page was opened, where it has a form.
        page: PDFium's.
    """
    found: list[Written] = []
    seen: set[tuple[str, str]] = set()
    fields: list[tuple[_Field, Rect]] = []
    count = min(int(pdfium_c.FPDFPage_GetAnnotCount(page.raw)), _MOST)
    form = document.formenv.raw if document.formenv is not None else None
    places: list[int] = []
    frames: list[Rect] = []
    for index in range(count):
        annotation = pdfium_c.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            kind = pdfium_c.FPDFAnnot_GetSubtype(annotation)
            rect = _rect(annotation)
            if kind == pdfium_c.FPDF_ANNOT_WIDGET:
                frames.append(rect)
                field = _field(form, annotation)
                if (
                    field is not None and (field.key, field.value) not in seen
                ):  # a field may stand there twice
                    seen.add((field.key, field.value))
                    fields.append((field, rect))
                    places.append(len(found))
                    found.append(Written("", rect))
            elif kind not in _NO_NOTES and (text := _note(annotation)) and ("", text) not in seen:
                seen.add(("", text))
                found.append(Written(text, rect))
        finally:
            pdfium_c.FPDFPage_CloseAnnot(annotation)
    if fields:
        textpage = page.get_textpage()
        labels = PageLabels(textpage, frames)
        for place, (field, rect) in zip(places, fields, strict=True):
            found[place] = Written(_labelled(field, rect, labels), rect)
        textpage.close()
    return found


def _labelled(field: _Field, rect: Rect, labels: PageLabels) -> str:
    """Put the label that people see before the value; the file's own name where nothing is printed beside the field."""
    if field.is_button:
        label = labels.behind(rect) or labels.beside(rect)
        if field.is_radio or field.title:  # they name the question, and what is printed is the answer
            name = field.title or field.name
            value = (
                field.value if _says(label, field.value) or _says(name, label) else f"{field.value} ({label})"
            )
        else:
            name, value = label or field.name, field.value
    else:
        label = labels.beside(rect)
        value = field.value
        if field.title:
            name = (
                field.title
                if _says(label, field.title) or _says(field.title, label)
                else f"{label} ({field.title})"
            )
        else:
            name = label or labels.above(rect) or field.name
    return f"{name}: {value}" if name else value


def _says(text: str, part: str) -> bool:
    """Tell whether a label adds nothing to another text: it is empty, or a part of it, or the other way round."""
    one, other = ("".join(filter(str.isalnum, t)).lower() for t in (text, part))
    return one in other or other in one


def written_text(written: list[Written]) -> str:
    """Return what goes behind a page's text, "" if there is nothing."""
    return "".join(f"\n{one.text}" for one in written)


def _field(form: Any, annotation: Any) -> _Field | None:
    """Read a field; None where nothing is filled in."""
    kind = -1 if form is None else pdfium_c.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (-1, pdfium_c.FPDF_FORMFIELD_UNKNOWN):
        # The form does not list this field, but it stands on the page with what was filled in.
        value = _string(annotation, b"V")
        name, title = _string(annotation, b"T"), _string(annotation, b"TU")
        return _Field(name, title, value) if value and value != _OFF else None
    if kind not in (*_VALUES, pdfium_c.FPDF_FORMFIELD_SIGNATURE):
        return None
    title = _told(pdfium_c.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    name = _told(pdfium_c.FPDFAnnot_GetFormFieldName, form, annotation)
    if kind == pdfium_c.FPDF_FORMFIELD_SIGNATURE:
        # Whose it is stands in a certificate, and whether it holds is for a program that checks such.
        value = "signed" if pdfium_c.FPDFAnnot_HasKey(annotation, b"V") else ""
    elif kind in _BUTTONS:
        if not pdfium_c.FPDFAnnot_IsChecked(form, annotation):
            return None
        value = _told(pdfium_c.FPDFAnnot_GetFormFieldExportValue, form, annotation) or "yes"
    elif kind in (pdfium_c.FPDF_FORMFIELD_COMBOBOX, pdfium_c.FPDF_FORMFIELD_LISTBOX):
        value = ", ".join(_chosen(form, annotation)) or _value(form, annotation)
    else:
        value = _value(form, annotation)
    if pdfium_c.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD and value:
        value = "(a password)"
    is_radio = kind == pdfium_c.FPDF_FORMFIELD_RADIOBUTTON
    return _Field(name, title, value, kind in _BUTTONS, is_radio) if value else None


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


def _rect(annotation: Any) -> Rect:
    rect = pdfium_c.FS_RECTF()
    if not pdfium_c.FPDFAnnot_GetRect(annotation, ctypes.byref(rect)):
        return (0.0, 0.0, 0.0, 0.0)
    return (rect.left, rect.bottom, rect.right, rect.top)
