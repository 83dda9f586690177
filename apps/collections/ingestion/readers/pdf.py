"""PDF text with PDFium, one page at a time, so that memory does not grow with the document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium_c

from apps.collections.ingestion import detect
from apps.collections.ingestion.readers.base import Reading, clean_text
from apps.collections.ingestion.readers.pdf_headings import HeadingFinder, outline_titles
from apps.collections.ingestion.readers.pdf_tables import TableFinder
from apps.collections.ingestion.readers.pdf_text import clean_page
from apps.collections.ingestion.types import FailureCode, PageText, ReaderLimits, ReadFailure

PAGE_END = "\n\n"


class PdfReader:
    """Read the text layer of a PDF; scanned pages without one are not recognised (no OCR)."""

    media_types = (detect.PDF,)

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
                f"The PDF has {count:,} pages; the limit is {limits.max_pages:,}. Split it.",
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
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise ReadFailure(
                FailureCode.ENCRYPTED_PDF,
                "The PDF is protected by a password. Remove the protection and upload it again.",
            ) from error
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            "The PDF is damaged and cannot be opened; it may be cut off. Export it again and upload the new file.",
        ) from error


def raw_page_text(textpage: pypdfium2.PdfTextPage) -> str:
    """Give PDFium's own text of a page; unpaired surrogates stay, so that offsets can be mapped back."""
    text: str = textpage.get_text_range(errors="surrogatepass")
    return text


def _pages(
    document: pypdfium2.PdfDocument, limits: ReaderLimits, warnings: list[str]
) -> Iterator[PageText]:
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
        cleaned = clean_page(raw)
        lines = finder.measure(textpage, raw, cleaned)
        regions = tables.find(page, textpage, raw, cleaned, index + 1)
        width, height = page.get_size()
        textpage.close()
        page.close()
        chars += len(cleaned.text)
        if chars > limits.max_chars:
            raise ReadFailure(
                FailureCode.TOO_LARGE,
                f"The PDF holds more than {limits.max_chars:,} characters of text. Split it.",
            )
        if any(ch.isalnum() for ch in cleaned.text):
            has_text = True
        else:
            empty_pages += 1
        finder.add(
            PageText(
                number=index + 1,
                text=cleaned.text + PAGE_END,
                width=round(width, 2),
                height=round(height, 2),
                regions=tuple(regions),
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
            f"Looking for tables took too long; those on pages {_ranges(tables.skipped)} are kept as plain text."
        )
    if bad_pages:
        warnings.append(f"Pages that could not be read: {_ranges(bad_pages)}.")
    if empty_pages:
        noun = "page has" if empty_pages == 1 else "pages have"
        warnings.append(
            f"{empty_pages} {noun} no text; if they are scans, they need text recognition (OCR), "
            "which is not available yet."
        )


def _no_text(bad_pages: list[int], empty_pages: int) -> ReadFailure:
    if bad_pages and not empty_pages:
        return ReadFailure(
            FailureCode.CORRUPT_FILE,
            "None of the PDF's pages can be read; the file is damaged. Export it again.",
        )
    return ReadFailure(
        FailureCode.NO_TEXT,
        "The PDF holds only images, no text (a scan?). Text recognition (OCR) is not available yet: "
        "upload a version with a text layer.",
    )


def _ranges(numbers: list[int]) -> str:
    shown = ", ".join(str(n) for n in numbers[:20])
    return shown + (f" and {len(numbers) - 20} more" if len(numbers) > 20 else "")
