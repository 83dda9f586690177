"""Read the pictures of a document's pages, one after the other; runs in the limited child process."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apps.collections.ingestion import media_types
from apps.collections.ingestion.ocr.known import known_result, picture_digest
from apps.collections.ingestion.ocr.layout import page_text
from apps.collections.ingestion.ocr.legible import MOST, SOME, legible
from apps.collections.ingestion.ocr.lines import Engine, OcrLine, Recognised, box_of, turned_back
from apps.collections.ingestion.ocr.pictures import picture_array, picture_frame, picture_open, read_scale
from apps.collections.ingestion.ocr.types import Scan, scan_to_json
from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _
from basics.texts import gettext_noop

PAGE_END = "\n\n"
_DPI = 200
_COVERED = 0.5  # of a line's letters, that the PDF's own text has in the same place

UNREADABLE = gettext_noop(
    "It is barely legible, or in a script that text recognition (OCR) isn't set up for. A workspace admin can select "
    "languages under Collections, Settings, Text recognition."
)
"""What is said of a page whose letters the engine only guesses at."""

Covered = Callable[[tuple[float, ...]], int]
"""Counts the letters of the page's own text inside a box (fractions: left, top, right, bottom)."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A page as a picture, with what its PDF says in text."""

    picture: Any
    layer: str
    covered: Covered | None


def pages_recognise(request: Mapping[str, Any], send: Callable[[Mapping[str, Any], bytes], None]) -> None:
    """Read pages and send each as it is done: ``scanned`` with number, text, scan and processor seconds.

    Args:
        request: ``path``, ``media_type``, ``pages`` (numbers from 1), ``languages`` (Tesseract's codes joined with +,
            "" for the engine that comes along), ``known`` (folders with results of earlier readings, see ``ocr/known.py``).
    """
    # Kept between pages: loading the models takes half a second.
    engine = _engine(str(request["languages"]))
    path, media_type = Path(request["path"]), str(request["media_type"])
    known = [Path(folder) for folder in request.get("known", ())]
    before = _cpu_seconds()
    for number in request["pages"]:
        text, scan = page_recognise(path, media_type, int(number), engine, known)
        now = _cpu_seconds()
        body = {"number": number, "text": text, "scan": scan_to_json(scan), "cpu_seconds": now - before}
        send({"scanned": body}, b"")
        before = now


def page_recognise(
    path: Path, media_type: str, number: int, engine: Engine, known: Sequence[Path] = ()
) -> tuple[str, Scan]:
    """Read one page, or find what was read of the same picture before.

    Args:
        known: folders with results of earlier readings.

    Returns:
        The page's text, with the end that separates it from the next page, and where its words stand.
    """
    try:
        shown = (
            _pdf_page(path, number) if media_type == media_types.PDF else _picture(path, media_type, number)
        )
        digest = picture_digest(shown.picture, shown.layer, engine.name)
        if (earlier := known_result(known, digest)) is not None:
            return earlier
        found = engine.read(shown.picture)
    except ReadFailure as failure:
        return PAGE_END, Scan("failed", problem=failure.message)
    except (subprocess.SubprocessError, OSError) as error:
        problem = _("Text recognition (%(engine)s) failed on this page: %(error)s.") % {
            "engine": engine.name,
            "error": type(error).__name__,
        }
        return PAGE_END, Scan("failed", problem=problem)
    if shown.covered is not None:
        kept = tuple(line for line in found.lines if not _is_known(line, found, shown.covered))
        found = replace(found, lines=kept)
    readable, unread = legible(found, engine.sure)
    if unread >= MOST:
        if not shown.layer:
            return PAGE_END, Scan("failed", problem=UNREADABLE)
        readable = replace(found, lines=())
    text, words = page_text(readable)
    layer = shown.layer + "\n\n" if shown.layer and text else shown.layer
    if layer:
        shift = len(layer)
        words = tuple(replace(w, char_start=w.char_start + shift, char_end=w.char_end + shift) for w in words)
    sure = [line.confidence for line in readable.lines]
    scan = Scan(
        "read",
        words=words,
        engine=engine.name,
        confidence=sum(sure) / len(sure) if sure else 0.0,
        layer_chars=len(layer),
        problem=UNREADABLE if unread >= SOME else "",
        digest=digest,
    )
    return layer + text + PAGE_END, scan


def _engine(languages: str) -> Engine:
    if languages:
        from apps.collections.ingestion.ocr.tesseract import TesseractEngine

        return TesseractEngine(languages)
    try:
        from apps.collections.ingestion.ocr.rapid import RapidEngine
    except ImportError as error:
        raise ReadFailure(
            FailureCode.NO_TEXT,
            _(
                "Text recognition (OCR) is not installed on this server (%(error)s). The operator can "
                "install it with “make install”."
            )
            % {"error": error},
        ) from error
    return RapidEngine()


def _picture(path: Path, media_type: str, number: int) -> _Shown:
    with picture_open(path, media_type) as opened:
        return _Shown(picture_array(picture_frame(opened, number)), "", None)


def _pdf_page(path: Path, number: int) -> _Shown:
    from apps.collections.ingestion.page_images import open_page
    from apps.collections.ingestion.readers.pdf import clean_textpage, raw_page_text
    from apps.collections.ingestion.readers.pdf_fields import page_written, written_text
    from apps.collections.ingestion.readers.pdf_scans import is_garbled
    from apps.collections.ingestion.readers.pdf_xfa import is_xfa, xfa_values

    document, page = open_page(path, number)
    width, height = page.get_size()
    scale = _DPI / 72
    scale *= read_scale(width * scale, height * scale)
    picture = picture_array(page.render(scale=scale, may_draw_forms=False).to_pil())
    textpage = page.get_textpage()
    raw = raw_page_text(textpage)
    layer = clean_textpage(textpage, raw).text
    written = written_text(page_written(document, page))
    if number == 1 and is_xfa(document):
        written += "".join(f"\n{one}" for one in xfa_values(document))
    if not any(ch.isalnum() for ch in layer) or is_garbled(layer):
        document.close()
        return _Shown(picture, written.strip(), None)
    layer += written
    boxes = _letter_places(page, textpage)
    document.close()

    def covered(box: tuple[float, ...]) -> int:
        left, top, right, bottom = box
        return sum(1 for x, y in boxes if left <= x <= right and top <= y <= bottom)

    return _Shown(picture, layer, covered)


def _letter_places(page: Any, textpage: Any) -> list[tuple[float, float]]:
    """Return the middles of the letters of a page's own text, as fractions of the page as it is drawn."""
    import pypdfium2.raw as pdfium_c

    from apps.collections.ingestion.page_images import to_view

    rect = pdfium_c.FS_RECTF()
    places = []
    for index in range(textpage.count_chars()):
        if pdfium_c.FPDFText_GetLooseCharBox(textpage.raw, index, rect):
            corners = to_view(pdfium_c, page, rect)
            if corners is not None:
                left, top, right, bottom = corners
                places.append(((left + right) / 2, (top + bottom) / 2))
    return places


def _is_known(line: OcrLine, found: Recognised, covered: Covered) -> bool:
    letters = sum(len(word.text) for word in line.words)
    return covered(turned_back(box_of(line.corners), found)) >= letters * _COVERED


def _cpu_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)  # Tesseract
    return own.ru_utime + own.ru_stime + helpers.ru_utime + helpers.ru_stime
