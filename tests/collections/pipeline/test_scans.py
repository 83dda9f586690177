"""Scanned pages: read by text recognition in a lane of their own, page by page, within the workspace's budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from PIL import ImageOps
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from apps.collections.display.waiting import document_waits
from apps.collections.documents import page_images as page_views
from apps.collections.documents import versions
from apps.collections.models import Chunk, Collection, Document, Page, Recognition
from apps.collections.pipeline import ocr_settings, scans
from apps.collections.storage.originals import page_cache
from basics.errors import Invalid
from jobs import registry
from jobs.context import JobInterrupted, JobYielded
from jobs.models import Job, JobStatus, Worker
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import attempt, ingest, job_of, upload
from tests.collections.ingestion.scans import (
    LINES,
    PAGE,
    SIDE,
    line_start,
    page_picture,
    picture_bytes,
    scan_pdf,
)

pytestmark = pytest.mark.django_db
TYPED = "This page was typed, and its text says so: reference ABC-7781."


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def read_all(document: Document) -> Document:
    """Run the jobs of a document one after the other, as the lanes do."""
    kinds = []
    while document.is_active:
        kinds.append(job_of(document).kind)
        document = attempt(document)
        assert len(kinds) < 8, kinds
    return document


def mixed(tmp_path: Path, lines: tuple[str, ...] = LINES[:1]) -> bytes:
    return scan_pdf(tmp_path / "mixed.pdf", [TYPED, page_picture(lines), None]).read_bytes()


def test_mixed_pdf_loses_no_page_and_says_what_was_read_from_pictures(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    document = ingest(cast, collection, "mixed.pdf", mixed(tmp_path, LINES))
    assert (document.status, job_of(document).kind) == ("processing", scans.SCAN_JOB)
    assert job_of(document).lane == "scan", "it holds no slot that others wait for"
    assert job_of(document).weight == scans.PAGE_WEIGHT, "one page"
    document = read_all(document)
    assert (document.status, document.error_message) == ("ready", "")
    first, second, third = Page.objects.filter(document=document).order_by("number")
    assert TYPED in first.text
    assert first.layout.get("scan") is None
    assert [line for line in second.text.splitlines() if line] == list(LINES)
    assert second.char_start == len(first.text)
    assert third.text.strip() == ""
    assert any("Page 2 was read by text recognition" in w for w in document.warnings)
    marked = Chunk.objects.get(document=document, metadata__ocr=True)
    assert "INV-20417" in marked.text
    assert Recognition.objects.get(tenant=cast.tenant).used_seconds > 0
    assert set(Job.objects.filter(payload__document=document.pk).values_list("status", flat=True)) == {
        JobStatus.SUCCEEDED
    }

    # The mark of a citation stands on the picture's own line.
    start = second.char_start + second.text.index("Pumps")
    chunk = Chunk(char_start=start, char_end=start + len(LINES[2]))
    [box] = page_views.passage_boxes(document, second, chunk.char_start, chunk.char_end)
    assert box.top == pytest.approx(line_start(2)[1] / SIDE, abs=0.03)
    assert 0.04 < box.left < 0.08
    assert 0.5 < box.width < 0.8


def test_page_that_is_half_text_and_half_scan_loses_neither(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    """Half a page of text is plenty, and half a page of picture, within margins, covers less than half of the page."""
    typed = [f"Typed line {n} of the notice names reference ABC-770{n} and its keeper." for n in range(6)]
    lines = LINES[1:3]
    picture = page_picture(lines, size=(SIDE, 330))
    path = tmp_path / "half.pdf"
    canvas = Canvas(str(path), pagesize=PAGE)
    for shows_text, shows_picture in ((True, False), (True, True), (False, True)):
        canvas.setFont("Helvetica", 6)
        for place, line in enumerate(typed if shows_text else ()):
            canvas.drawString(20, 240 - 9 * place, line)
        if shows_picture:
            canvas.drawImage(ImageReader(picture), 10, 30, 245, 245 * 330 / SIDE)
        canvas.showPage()
    canvas.save()
    document = read_all(ingest(cast, collection, "half.pdf", path.read_bytes()))
    assert document.status == "ready", document.error_message
    only_typed, half, only_scanned = (
        page.text for page in Page.objects.filter(document=document).order_by("number")
    )
    for line in typed:
        assert line in only_typed
        assert half.count(line) == 1
    for line in lines:
        assert half.count(line) == 1
        assert line in only_scanned
    assert "INV-20417" not in only_typed
    found = "\n".join(Chunk.objects.filter(document=document).values_list("text", flat=True))
    assert found.count("INV-20417") == 2
    assert found.count("ABC-7705") == 2


def test_images_are_read_and_shown(cast: Cast, collection: Collection, storage: Path) -> None:
    line = (LINES[1],)
    data = picture_bytes(page_picture(line), "WEBP")
    document = read_all(upload(cast, collection, "letter.webp", data))
    assert document.status == "ready", document.error_message
    page = Page.objects.get(document=document)
    assert page.text.strip() == LINES[1]
    assert (page.width, page.height) == (SIDE, SIDE)
    assert page_views.has_images(document)
    assert page_views.page_image(document, 1).read_bytes()[8:12] == b"WEBP"


def test_workspace_without_recognition_or_budget_is_told(
    cast: Cast, collection: Collection, tmp_path: Path, settings: Any
) -> None:
    def rules(**changes: Any) -> None:
        values: dict[str, Any] = {"is_on": True, "languages": "", "cpu_seconds": None} | changes
        ocr_settings.recognition_set(tenant=cast.tenant, actor=cast.actor("admin"), **values)

    image = picture_bytes(page_picture((LINES[0],)))
    rules(is_on=False)
    refused = read_all(upload(cast, collection, "a.png", image))
    assert (refused.status, refused.error_code) == ("failed", "no_text")
    assert "switched off in this workspace" in refused.error_message
    partial = read_all(upload(cast, collection, "mixed.pdf", mixed(tmp_path)))
    assert partial.status == "ready", "the pages with text answer"
    assert any("Page 2 was not read" in w for w in partial.warnings)
    rules(cpu_seconds=0)
    state = ocr_settings.recognition_state(cast.tenant.pk)
    assert "used up" in state.problem
    settings.OCR_CPU_SECONDS = 0
    assert "on this server" in ocr_settings.recognition_state(cast.tenant.pk).problem
    with pytest.raises(Invalid) as error:
        rules(languages="klingon")
    assert "languages" in error.value.data["fields"]


def test_reading_goes_on_at_the_page_where_it_was_stopped(
    cast: Cast, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = [page_picture((f"Page number {n} of the book",)) for n in range(3)]
    data = scan_pdf(tmp_path / "book.pdf", list(pictures)).read_bytes()
    document = ingest(cast, collection, "book.pdf", data)
    real = scans._keep
    kept: list[int] = []

    def keep(ctx: Any, doc: Any, number: int, *rest: Any) -> None:
        real(ctx, doc, number, *rest)
        kept.append(number)
        if kept == [1]:
            raise JobInterrupted("the worker stops")
        if kept == [1, 2]:
            raise JobYielded("another workspace has its turn")

    monkeypatch.setattr(scans, "_keep", keep)
    document = attempt(document)
    assert (document.status, document.progress_current, document.progress_total) == ("processing", 1, 3)
    document = read_all(document)
    assert document.status == "ready"
    assert kept == [1, 2, 3], "no page is read twice"
    assert registry.get(scans.SCAN_JOB).lane == "scan"


def test_picture_without_letters_says_so(cast: Cast, collection: Collection) -> None:
    blank = picture_bytes(page_picture(()))
    document = read_all(upload(cast, collection, "blank.png", blank))
    assert (document.status, document.error_code) == ("failed", "no_text")
    assert "found no text" in document.error_message


def test_page_in_an_unknown_script_is_named_and_never_quoted(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    strange = ImageOps.mirror(page_picture(LINES[:2]))
    data = scan_pdf(tmp_path / "mixed.pdf", [TYPED, strange, strange]).read_bytes()
    document = read_all(ingest(cast, collection, "mixed.pdf", data))
    assert document.status == "ready", "the page with text answers"
    [told] = [one for one in document.warnings if "could not be read" in one]
    assert told.startswith("Pages 2, 3 could not be read. It is barely legible, or in a script that")
    assert not Chunk.objects.filter(document=document, metadata__ocr=True).exists()
    assert [page.text.strip() for page in Page.objects.filter(document=document, number__gt=1)] == ["", ""]
    alone = read_all(upload(cast, collection, "strange.png", picture_bytes(strange)))
    assert (alone.status, alone.error_code) == ("failed", "no_text")
    assert "in a script that text recognition (OCR) isn't set up for" in alone.error_message


def test_page_that_was_read_is_not_recognised_again(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    document = read_all(ingest(cast, collection, "mixed.pdf", mixed(tmp_path)))
    before = Page.objects.get(document=document, number=2)
    used = Recognition.objects.get(tenant=cast.tenant).used_seconds
    # What is kept is told apart from what would be read: a recogniser never says this.
    [kept] = page_cache(cast.tenant.pk, document.sha256).glob("scan.*.json")
    kept.write_text(kept.read_text().replace("harbour office", "harbour keeper"))
    actor = cast.actor("owner")
    again = versions.document_reindex(tenant=cast.tenant, actor=actor, document=document)
    after = Page.objects.get(document=read_all(again), number=2)
    assert "harbour keeper" in after.text
    assert after.layout["scan"]["digest"] == before.layout["scan"]["digest"]
    assert Recognition.objects.get(tenant=cast.tenant).used_seconds - used < used

    # Another page before it: a new version of the file, the same picture.
    more = scan_pdf(tmp_path / "more.pdf", [TYPED, TYPED, page_picture(LINES[:1])]).read_bytes()
    moved = read_all(ingest(cast, collection, "mixed.pdf", more))
    assert "harbour keeper" in Page.objects.get(document=moved, number=3).text
    # A damaged file counts as none.
    for folder in (document.sha256, moved.sha256):
        for path in page_cache(cast.tenant.pk, folder).glob("scan.*.json"):
            path.write_text("{")
    again = versions.document_reindex(tenant=cast.tenant, actor=actor, document=moved)
    assert LINES[0] in Page.objects.get(document=read_all(again), number=3).text


def test_scan_that_waits_says_how_long(cast: Cast, collection: Collection, tmp_path: Path) -> None:
    Worker.objects.create(name="here:1", seen_at=timezone.now())
    pages = [page_picture((LINES[n],)) for n in range(3)]
    first = ingest(cast, collection, "a.pdf", scan_pdf(tmp_path / "a.pdf", pages).read_bytes())
    second = ingest(cast, collection, "b.pdf", scan_pdf(tmp_path / "b.pdf", pages[:1]).read_bytes())
    waiting = document_waits([first, second])
    # The short one is due first, though it came later.
    assert waiting[second.pk].text == "Waiting: next in line"
    assert waiting[first.pk].text == "Waiting: 1 document ahead of it, about 10 s"
