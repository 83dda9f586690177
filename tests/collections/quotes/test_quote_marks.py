"""A quote of a real PDF: whole over the end of a page, and marked in the viewer on both pages and nowhere else."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.collections.models import Chunk, Collection, Page
from apps.collections.quotes import selectors
from apps.collections.quotes.parts import Quotable, quotable_from_text, quotable_of
from apps.collections.quotes.selectors import quotables_read
from apps.collections.search import search_run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest
from tests.collections.ingestion.files import make_pdf
from tests.markup import flat
from tests.statements import statements_noted

pytestmark = pytest.mark.django_db
WHOLE = "The duty on lamps that are made of glass is two percent of the value."
ONE = ["Trucks are dear and heavy these days.", "The duty on lamps that are made of"]
TWO = ["glass is two percent of the value.", "Bikes are free of duty, as No. 12 says."]


def test_quote_over_two_pages_is_whole_and_marked_on_both(
    cast: Cast, member_client: Client, collection: Collection, tmp_path: Path
) -> None:
    pdf = make_pdf(tmp_path / "a.pdf", [ONE, TWO, ["Nothing else is said on the last page of all."]])
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "a.pdf", pdf.read_bytes())
        chunk = Chunk.objects.filter(document=document).order_by("index")[0]
        kept = quotables_read(cast.tenant.pk, [chunk.pk])[chunk.pk]
        assert quotables_read(cast.other_tenant.pk, [chunk.pk]) == {}
        asked: dict[str, Any] = {
            "tenant": cast.tenant,
            "actor": cast.actor("member"),
            "query": "duty on lamps",
        }
        with statements_noted() as plain:
            hits = search_run(collections=[collection], **asked).hits
        assert {hit.quotable for hit in hits} == {None}
        with statements_noted() as sent:
            hits = search_run(collections=[collection], is_quoted=True, **asked).hits
        assert len(sent) == len(plain)
        read = quotables_read(cast.tenant.pk, [hit.chunk_id for hit in hits])
        assert {hit.chunk_id: hit.quotable for hit in hits} == read
        assert read[chunk.pk] == kept
        made = quotable_from_text(kept, chunk.char_start, chunk.text)
        assert made is not None
        pages = {p.number: p for p in Page.objects.filter(document=document)}
    found = {made.said(u.start, u.end): u for u in made.units}
    assert list(found)[:3] == [ONE[0], WHOLE, TWO[1]]
    unit = found[WHOLE]
    assert (unit.page, found[TWO[1]].page) == (1, 2)

    address = reverse("collections:document", args=[cast.tenant.slug, collection.pk, document.pk])
    mark = f"chunk={chunk.pk}&mark={unit.start}-{unit.end}"

    def shown(query: str) -> str:
        answer = member_client.get(f"{address}?{query}&{mark}")
        assert answer.status_code == 200
        return answer.content.decode()

    def marked(query: str) -> list[str]:
        parts = re.findall(r"<mark[^>]*>(.*?)</mark>", shown(query), re.DOTALL)
        return [" ".join(html.unescape(part).split()) for part in parts]

    assert marked("view=text") == marked("page=1&view=text") == [ONE[1]]
    assert marked("page=2&view=text") == [TWO[0]]
    assert marked("page=3&view=text") == []
    boxes = [flat(shown(f"page={number}&view=image")).count("<rect ") for number in (1, 2, 3)]
    assert boxes == [1, 1, 0]
    assert f"&amp;mark={unit.start}-{unit.end}" in shown("page=2&view=text"), "the other page has it too"
    for wrong in ("5", "9-2", "1-x", "１-９", f"1-{10**12}"):
        assert member_client.get(f"{address}?mark={wrong}").status_code == 404
    assert pages[2].text.startswith(TWO[0][:5])


def test_an_edited_chunk_has_no_place_on_a_page(cast: Cast, collection: Collection, tmp_path: Path) -> None:
    pdf = make_pdf(tmp_path / "b.pdf", [ONE, TWO])
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "b.pdf", pdf.read_bytes())
        chunks = Chunk.objects.filter(document=document)
        assert set(quotables_read(cast.tenant.pk, [c.pk for c in chunks])) == {c.pk for c in chunks}
        chunks.update(text="Somebody has written this.", is_edited=True)
        assert quotables_read(cast.tenant.pk, [c.pk for c in chunks]) == {}


def test_a_passage_is_cut_into_sentences_once_until_something_of_it_changes(
    cast: Cast, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut: list[int] = []

    def counted(parts: Any, start: int, end: int, **how: Any) -> Quotable:
        cut.append(start)
        return quotable_of(parts, start, end, **how)

    monkeypatch.setattr(selectors, "quotable_of", counted)
    selectors.quotable.cache_clear()
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "c.pdf", make_pdf(tmp_path / "c.pdf", [ONE, TWO]).read_bytes())
        chunk = Chunk.objects.filter(document=document).order_by("index")[0]

        def units() -> list[Any]:
            found: list[Any] = json.loads(quotables_read(cast.tenant.pk, [chunk.pk])[chunk.pk])["units"]
            return found

        first = units()
        first_units, before = [*first], len(cut)
        first.clear()  # what a caller does with it is not what the next one gets
        assert units() == first_units
        assert len(cut) == before == 1
        page = Page.objects.get(document=document, number=1)
        end = len(ONE[0])
        page.layout = {**page.layout, "headings": [[1, "Trucks", 0, end]]}
        page.save(update_fields=["layout"])
        assert units() != first_units
        assert len(cut) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"name": "__init__", "url": "https://a.b/_c_/d"}, {"name": "x|y", "url": "*a* `b`"}]'),
        ("a.jsonl", '{"name": "__init__", "url": "https://a.b/_c_/d"}\n{"name": "x|y", "url": "*a* `b`"}\n'),
    ],
)
def test_values_of_data_files_are_quoted_as_they_are(
    cast: Cast, collection: Collection, name: str, content: str
) -> None:
    said = _said(cast, collection, name, content.encode())
    rows = [text for kind, text in said if kind == "row"]
    assert rows == ["__init__ | https://a.b/_c_/d", "x|y | *a* `b`"]


def test_what_is_said_is_quoted_with_its_time(cast: Cast, collection: Collection) -> None:
    cues = (
        "1\n00:00:01,000 --> 00:00:02,500\n*a* is a __b__\n\n2\n00:00:03,000 --> 00:00:04,000\nand no more.\n"
    )
    said = _said(cast, collection, "a.srt", cues.encode())
    assert said[1:] == [("row", "00:00:01,000 – 00:00:04,000 | *a* is a __b__ and no more.")]


def test_headings_are_quoted_without_the_number_signs_that_a_reader_adds(
    cast: Cast, collection: Collection
) -> None:
    said = _said(cast, collection, "a.md", b"# One *two*\n\nA sentence stands here.\n")
    assert said == [("heading", "One two"), ("sentence", "A sentence stands here.")]


def _said(cast: Cast, collection: Collection, name: str, content: bytes) -> list[tuple[str, str]]:
    """Return kind and text of all that may be quoted; the header of a table is its first, a heading."""
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, name, content)
        chunk = Chunk.objects.get(document=document)
        kept = quotables_read(cast.tenant.pk, [chunk.pk])[chunk.pk]
        made = quotable_from_text(kept, chunk.char_start, chunk.text)
    assert made is not None
    return [(unit.kind, made.said(unit.start, unit.end, unit.kind)) for unit in made.units]


def test_a_page_that_comes_whole_and_one_that_comes_cut_give_the_same(
    cast: Cast, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Über die Straße führt eine schöne Brücke, die 1887 gebaut wurde. "
    pdf = make_pdf(tmp_path / "a.pdf", [[f"{said}{n}." for n in range(20)] for _ in range(4)])
    limit = f"<= {selectors.WHOLE_BYTES} "
    with tenant_scope(cast.tenant.pk):
        for name, content in (
            ("a.pdf", pdf.read_bytes()),
            ("a.md", (f"# Brücken\n\n{said * 3}\n\n" * 90).encode()),
            ("b.txt", ("schöne Brücken ohne Ende " * 400).encode()),
        ):
            ingest(cast, collection, name, content)
        chunks = list(Chunk.objects.values_list("pk", flat=True))
        sizes = [len(text.encode()) for text in Page.objects.values_list("text", flat=True)]
        assert min(sizes) < selectors.WHOLE_BYTES < max(sizes)
        read = []
        for most in (selectors.WHOLE_BYTES, 0, 10**9):
            monkeypatch.setattr(selectors, "_READ", selectors._READ.replace(limit, f"<= {most} "))
            limit = f"<= {most} "
            assert selectors._READ.count(limit) == 2
            read.append(quotables_read(cast.tenant.pk, chunks))
    assert len(read[0]) == len(chunks) > 10
    assert read[0] == read[1] == read[2]
    cuts = {tuple(json.loads(kept)["is_cut"]) for kept in read[0].values()}
    assert cuts >= {(False, True), (True, True), (True, False)}
