"""PDF text with PDFium, one page at a time, so that memory does not grow with the document."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium_c

from apps.collections.ingestion import media_types
from apps.collections.ingestion.ocr.types import Scan
from apps.collections.ingestion.readers.base import Reading, clean_text
from apps.collections.ingestion.readers.pdf_breaks import Box
from apps.collections.ingestion.readers.pdf_fields import page_written, written_text
from apps.collections.ingestion.readers.pdf_headings import HeadingFinder, outline_titles
from apps.collections.ingestion.readers.pdf_lines import page_marks
from apps.collections.ingestion.readers.pdf_scans import is_scanned
from apps.collections.ingestion.readers.pdf_tables import TableFinder
from apps.collections.ingestion.readers.pdf_text import CleanPage, clean_page
from apps.collections.ingestion.readers.pdf_xfa import READ, UNREAD, is_xfa, xfa_values
from apps.collections.ingestion.types import FailureCode, PageText, ReaderLimits, ReadFailure
from basics.texts import gettext as _
from basics.texts import ngettext, number_told

PAGE_END = "\n\n"


class PdfReader:
    """Read the text layer of a PDF; scanned pages are marked for text recognition (OCR)."""

    media_types = (media_types.PDF,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``encrypted_pdf``, ``corrupt_file``, ``too_many_pages`` here; ``no_text``, ``too_large``
                while the pages are read.
        """
        document = open_pdf(path)
        count = len(document)
        if count > limits.max_pages:
            document.close()
            raise ReadFailure(
                FailureCode.TOO_MANY_PAGES,
                _("The PDF has %(count)s pages; the limit is %(max_pages)s. Split it.")
                % {"count": number_told(count), "max_pages": number_told(limits.max_pages)},
                data={"pages": count, "max_pages": limits.max_pages},
            )
        title = clean_text(document.get_metadata_value("Title") or "").strip()
        warnings: list[str] = []
        return Reading(
            count, _pages(document, limits, warnings), is_paged=True, title=title, warnings=warnings
        )


def open_pdf(path: Path) -> pypdfium2.PdfDocument:
    """Open a PDF for reading.

    Raises:
        ReadFailure: ``encrypted_pdf`` or ``corrupt_file``.
    """
    try:
        document = pypdfium2.PdfDocument(path)
        document.init_forms()  # before any page is opened, so that fields have values
        return document
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise ReadFailure(
                FailureCode.ENCRYPTED_PDF,
                _("The PDF is protected by a password. Remove the protection and upload it again."),
            ) from error
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _(
                "The PDF is damaged or incomplete and cannot be opened. Export it again and upload the "
                "new file."
            ),
        ) from error


def raw_page_text(textpage: pypdfium2.PdfTextPage) -> str:
    """Give PDFium's own text of a page; unpaired surrogates stay, so that offsets can be mapped back."""
    text: str = textpage.get_text_range(errors="surrogatepass")
    return text


def clean_textpage(textpage: pypdfium2.PdfTextPage, raw: str) -> CleanPage:
    """Clean a page's text by what it says and by where its letters stand.

    Args:
        textpage: the page's text layer.
        raw: what ``raw_page_text`` gave for it.
    """
    wide = [i for i, ch in enumerate(raw) if ch > "\uffff"]
    rect = pdfium_c.FS_RECTF()

    def where(offset: int) -> Box | None:
        # PDFium counts in UTF-16 units.
        index = pdfium_c.FPDFText_GetCharIndexFromTextIndex(textpage.raw, offset + bisect_left(wide, offset))
        if index < 0 or not pdfium_c.FPDFText_GetLooseCharBox(textpage.raw, index, rect):
            return None
        return float(rect.left), float(rect.bottom), float(rect.right), float(rect.top)

    def place(offset: int) -> float | None:
        box = where(offset)
        return None if box is None else (box[0] + box[2]) / 2

    return clean_page(raw, place, where)


def _pages(document: pypdfium2.PdfDocument, limits: ReaderLimits, warnings: list[str]) -> Iterator[PageText]:
    finder = HeadingFinder(outline_titles(document))
    tables = TableFinder(limits.table_seconds)
    chars = 0
    has_text = False
    bad_pages: list[int] = []
    empty_pages = 0
    for index in range(len(document)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            # One broken page must not cost the others; it is named in a warning.
            bad_pages.append(index + 1)
            finder.add(PageText(number=index + 1, text=PAGE_END), [])
            yield from finder.ready()
            continue
        textpage = page.get_textpage()
        raw = raw_page_text(textpage)
        cleaned = clean_textpage(textpage, raw)
        written = page_written(document, page)
        own = cleaned.text + written_text(written)
        if index == 0 and is_xfa(document):
            values = xfa_values(document)
            own += "".join(f"\n{one}" for one in values)
            warnings.append(_(READ if values else UNREAD))
        lines = finder.measure(textpage, raw, cleaned)
        regions = tables.find(page, textpage, raw, cleaned, index + 1)
        marks = page_marks(textpage, raw, cleaned, lines, regions)
        scan = Scan("wanted") if is_scanned(page, textpage, cleaned.text) else None
        width, height = page.get_size()
        textpage.close()
        page.close()
        chars += len(own)
        if chars > limits.max_chars:
            raise ReadFailure(
                FailureCode.TOO_LARGE,
                _("The PDF holds more than %(max_chars)s characters of text. Split it.")
                % {"max_chars": number_told(limits.max_chars)},
            )
        if scan is not None or any(ch.isalnum() for ch in own):
            has_text = True
        else:
            empty_pages += 1
        finder.add(
            PageText(
                number=index + 1,
                text=own + PAGE_END,
                width=round(width, 2),
                height=round(height, 2),
                regions=tuple(regions),
                scan=scan,
                marks=marks,
            ),
            lines,
        )
        yield from finder.ready()
    yield from finder.rest()
    document.close()
    if not has_text:
        raise _no_text(bad_pages, empty_pages)
    if tables.skipped:
        warnings.append(
            _("Looking for tables took too long; those on pages %(skipped)s are kept as plain text.")
            % {"skipped": _ranges(tables.skipped)}
        )
    if bad_pages:
        warnings.append(_("Pages that could not be read: %(bad_pages)s.") % {"bad_pages": _ranges(bad_pages)})
    if empty_pages:
        warnings.append(
            ngettext(
                "%(n)s page has neither text nor a picture.",
                "%(n)s pages have neither text nor a picture.",
                empty_pages,
            )
            % {"n": empty_pages}
        )


def _no_text(bad_pages: list[int], empty_pages: int) -> ReadFailure:
    if bad_pages and not empty_pages:
        return ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("None of the PDF's pages can be read; the file is damaged. Export it again."),
        )
    return ReadFailure(
        FailureCode.NO_TEXT,
        _("The pages of this PDF are empty: they contain neither text nor pictures. Export it again."),
    )


def _ranges(numbers: list[int]) -> str:
    shown = ", ".join(str(n) for n in numbers[:20])
    return shown + (f" and {len(numbers) - 20} more" if len(numbers) > 20 else "")
