"""Which passages of the collections rows rest on, and which have no question. Reads only.

A passage has a question when the place of a row's source overlaps it, so that the map survives another chunking.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models.functions import Length
from django.utils.translation import gettext as _

from apps.collections.models import Collection, Document
from apps.datasets.generation.corpus import LEAST_CHARS, chunks_open
from apps.datasets.models import Dataset, DatasetCheck, GenerationJob
from apps.datasets.records.record import Record
from basics.texts import number_told
from tenancy.actors import Actor
from web.charts.bars import Strips, strips_chart

CELLS = 48
"""Stretches that a document is drawn as, at most."""
LISTED = 24
"""Documents that are drawn: those with most passages without a question."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Passages of a document that follow each other.

    Attributes:
        first, last: their numbers in the document, from 1.
        chunks, asked: how many they are, and how many of them have a question.
        page: where they begin, None where the document has no pages.
    """

    first: int
    last: int
    chunks: int
    asked: int
    page: int | None


@dataclass(frozen=True, slots=True)
class DocumentCoverage:
    """A document's passages that are long enough to be asked about, and how many have a question."""

    id: int
    collection_id: int
    document: str
    chunks: int
    asked: int
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """All documents that rows may be made from, those with most passages without a question first."""

    documents: tuple[DocumentCoverage, ...]

    @property
    def chunks(self) -> int:
        """Passages in all."""
        return sum(found.chunks for found in self.documents)

    @property
    def asked(self) -> int:
        """Passages that have a question."""
        return sum(found.asked for found in self.documents)

    def to_json(self) -> dict[str, Any]:
        """Return numbers of all and the first documents, as a check keeps them."""
        untouched = sum(not found.asked for found in self.documents)
        return {
            "counts": {
                "passages with a question": self.asked,
                "without": self.chunks - self.asked,
                "documents": len(self.documents),
                "documents without any": untouched,
            },
            "documents": [asdict(found) for found in self.documents[:LISTED]],
        }


def coverage_of(*, actor: Actor, dataset: Dataset, records: Iterable[Record]) -> Coverage:
    """Return which passages rows rest on, over the collections that the dataset was made from or quotes.

    Documents that are gone, closed to some people or not ready are left out, as generation leaves them out.
    """
    actor.require("dataset.read")
    # Sets: what they hold is bounded by the passages, however many rows rest on them.
    places: dict[int, set[tuple[int, int]]] = {}
    named: set[int] = set()
    for record in records:
        for source in record.sources:
            if source.end and source.document_id is not None:
                places.setdefault(source.document_id, set()).add((source.start, source.end))
            elif source.chunk_id is not None:
                named.add(source.chunk_id)
    options = GenerationJob.objects.visible_to(actor).filter(dataset=dataset)
    collections = {pk for found in options.values_list("options", flat=True) for pk in found["collections"]}
    quoted = Document.objects.visible_to(actor).filter(pk__in=places)
    collections |= set(quoted.values_list("collection_id", flat=True).distinct())
    shown = Collection.objects.visible_to(actor).filter(pk__in=collections).order_by("pk")
    found = [
        _document(chunks, _merged(places.get(chunks[0][0], set())), named)
        for chunks in _by_document(actor, list(shown.values_list("pk", flat=True)))
    ]
    found.sort(key=lambda one: (one.asked - one.chunks, one.document, one.id))
    return Coverage(tuple(found))


Row = tuple[int, int, str, int, int, int, int, "int | None"]
"""Document, collection, its name, chunk, number, start, end, page."""


def _by_document(actor: Actor, collections: list[int]) -> Iterable[list[Row]]:
    rows = (
        chunks_open(actor, collections)
        .annotate(size=Length("text"))
        .filter(size__gte=LEAST_CHARS)
        .order_by("document_id", "index")
        .values_list(
            "document_id",
            "document__collection_id",
            "document__name",
            "pk",
            "index",
            "char_start",
            "char_end",
            "page_start",
        )
    )
    chunks: list[Row] = []
    for row in rows.iterator(chunk_size=2000):
        if chunks and chunks[0][0] != row[0]:
            yield chunks
            chunks = []
        chunks.append(row)
    if chunks:
        yield chunks


def _merged(places: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return stretches of characters as few that do not overlap, in their order."""
    made: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


def _document(chunks: list[Row], places: list[tuple[int, int]], named: set[int]) -> DocumentCoverage:
    ends = [end for _, end in places]
    asked = []
    for *_ids, pk, _index, start, end, _page in chunks:
        at = bisect_left(ends, start + 1)
        asked.append(pk in named or (at < len(places) and places[at][0] < end))
    each = -(-len(chunks) // CELLS)
    stretches = [
        Stretch(part[0][4] + 1, part[-1][4] + 1, len(part), sum(asked[n : n + each]), part[0][7])
        for n in range(0, len(chunks), each)
        for part in (chunks[n : n + each],)
    ]
    pk, collection_id, name = chunks[0][:3]
    return DocumentCoverage(pk, collection_id, name, len(chunks), sum(asked), tuple(stretches))


@dataclass(frozen=True, slots=True)
class CoverageFigures:
    """A coverage as pages show it.

    Attributes:
        percent: of the passages that have a question.
        left: documents that are not drawn.
    """

    chart: Strips
    percent: int
    asked: int
    chunks: int
    documents: list[dict[str, Any]]
    left: int


def coverage_shown(check: DatasetCheck | None, most: int = LISTED) -> CoverageFigures | None:
    """Return the picture of a coverage check; None without one, or where there is no passage to ask about."""
    result: Mapping[str, Any] = check.result if check is not None else {}
    documents = result.get("documents") or []
    if not documents:
        return None
    counts, shown = result["counts"], documents[:most]
    asked = counts["passages with a question"]
    chunks = asked + counts["without"]
    chart = strips_chart(
        [
            (
                found["document"],
                [(_told(cell), cell["asked"] / cell["chunks"]) for cell in found["stretches"]],
                _("%(asked)s of %(chunks)s")
                % {"asked": number_told(found["asked"]), "chunks": number_told(found["chunks"])},
            )
            for found in shown
        ]
    )
    left = counts["documents"] - len(shown)
    lines = [{**found, "missing": found["chunks"] - found["asked"]} for found in shown]
    return CoverageFigures(chart, round(100 * asked / chunks), asked, chunks, lines, left)


def _told(cell: Mapping[str, Any]) -> str:
    facts = {name: cell[name] for name in ("first", "last", "page", "asked", "chunks")}
    if cell["first"] == cell["last"]:
        if cell["page"]:
            told = (
                _("Passage %(first)s, page %(page)s: has a question")
                if cell["asked"]
                else _("Passage %(first)s, page %(page)s: no question")
            )
        else:
            told = (
                _("Passage %(first)s: has a question")
                if cell["asked"]
                else _("Passage %(first)s: no question")
            )
        return told % facts
    if not cell["asked"]:
        if cell["page"]:
            told = _("Passages %(first)s to %(last)s, page %(page)s: none of %(chunks)s with a question")
        else:
            told = _("Passages %(first)s to %(last)s: none of %(chunks)s with a question")
        return told % facts
    if cell["page"]:
        told = _("Passages %(first)s to %(last)s, page %(page)s: %(asked)s of %(chunks)s with a question")
    else:
        told = _("Passages %(first)s to %(last)s: %(asked)s of %(chunks)s with a question")
    return told % facts
