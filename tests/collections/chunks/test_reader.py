"""The chunk reader: places, steps, filters, links, chains and figures; what one may not see is not there."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.collections.chunks import links
from apps.collections.chunks import selectors as reader
from apps.collections.chunks.selectors import ChunkFilter, ReaderCursor
from apps.collections.chunks.statistics import chunk_statistics
from apps.collections.models import Chunk, ChunkLink, Collection, Document, LinkOrigin
from basics.errors import DomainError, Invalid, Missing
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest

pytestmark = pytest.mark.django_db
LONG = b"# Rules\n\n" + b"\n\n".join(
    b"## Part %d\n\nSentence one of part %d about tariff number %d. " % (n, n, n)
    + b"It is followed by more words, so that every part fills a passage of its own. " * 4
    for n in range(6)
)


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def lamps(cast: Cast, collection: Collection) -> Document:
    return ingest(cast, collection, "lamps.md", LAMPS)


@pytest.fixture
def rules(cast: Cast, collection: Collection, lamps: Document) -> Document:
    return ingest(cast, collection, "rules.md", LONG)


def chunks_of(*documents: Document) -> list[Chunk]:
    return [c for d in documents for c in Chunk.objects.filter(document=d).order_by("index")]


def limit(document: Document) -> None:
    Document.objects.filter(pk=document.pk).update(is_restricted=True)


def test_reader_goes_over_all_chunks_once_and_back(
    cast: Cast, collection: Collection, lamps: Document, rules: Document
) -> None:
    actor, every = cast.actor("viewer"), chunks_of(lamps, rules)
    cursor, seen = ReaderCursor(collection.pk), []
    while (step := reader.reader_next(actor=actor, cursor=cursor)).chunk is not None:
        cursor = ReaderCursor.from_text(step.cursor.to_text())
        assert cursor == step.cursor
        seen.append(step.chunk)
    assert seen == every
    assert step.cursor == cursor, "at the end it stays"
    assert reader.reader_place(actor=actor, cursor=cursor) == (len(every) - 1, len(every))
    back = [every[-1]]
    while (step := reader.reader_previous(actor=actor, cursor=cursor)).chunk is not None:
        cursor = step.cursor
        back.append(step.chunk)
    assert back == every[::-1]
    reset = reader.reader_reset(cursor)
    assert reader.reader_previous(actor=actor, cursor=reset).chunk is None
    assert reader.reader_current(actor=actor, cursor=reset).chunk == every[0]


def test_reader_jumps_to_places(cast: Cast, collection: Collection, lamps: Document, rules: Document) -> None:
    actor, every = cast.actor("viewer"), chunks_of(lamps, rules)
    cursor = ReaderCursor(collection.pk)
    for place in (0, 2, len(every) - 1, -1, -len(every)):
        step = reader.reader_jump(actor=actor, cursor=cursor, place=place)
        assert step.chunk == every[place]
        assert reader.reader_current(actor=actor, cursor=step.cursor).chunk == every[place]
    for place in (len(every), -len(every) - 1, 10**30):
        with pytest.raises(Missing):
            reader.reader_jump(actor=actor, cursor=cursor, place=place)


def test_reader_goes_on_behind_a_chunk_that_has_gone(
    cast: Cast, collection: Collection, rules: Document
) -> None:
    actor = cast.actor("viewer")
    step = reader.reader_jump(actor=actor, cursor=ReaderCursor(collection.pk), place=-3)
    assert step.chunk is not None
    after = reader.reader_next(actor=actor, cursor=step.cursor).chunk
    step.chunk.delete()
    assert reader.reader_current(actor=actor, cursor=step.cursor).chunk == after
    assert reader.reader_next(actor=actor, cursor=step.cursor).chunk == after


def test_reader_of_one_document_jumps_to_its_indexes(
    cast: Cast, collection: Collection, lamps: Document, rules: Document
) -> None:
    actor, own = cast.actor("viewer"), chunks_of(rules)
    only = ReaderCursor(collection.pk, ChunkFilter(document_id=rules.pk))
    for place in (0, 1, -1, -2):
        assert reader.reader_jump(actor=actor, cursor=only, place=place).chunk == own[place]
    for place in (len(own), -len(own) - 1, 10**20):
        with pytest.raises(Missing):
            reader.reader_jump(actor=actor, cursor=only, place=place)


def read(cast: Cast, collection: Collection, role: str = "viewer", **where: Any) -> list[Chunk]:
    rows = reader.chunk_rows(actor=cast.actor(role), collection=collection, where=ChunkFilter(**where))
    return list(rows)


def test_filters_leave_what_they_say(
    cast: Cast, collection: Collection, lamps: Document, rules: Document
) -> None:
    every, of_lamps = chunks_of(lamps, rules), chunks_of(lamps)
    Chunk.objects.filter(pk=every[0].pk).update(is_disabled=True, kind="table")
    assert read(cast, collection) == every
    assert read(cast, collection, path="lamps.md") == of_lamps
    assert read(cast, collection, path_prefix="rul") == chunks_of(rules)
    assert read(cast, collection, is_disabled=True) == every[:1]
    assert read(cast, collection, kinds=("table", "function")) == every[:1]
    assert read(cast, collection, text="TARIFF NUMBER 4")[0].text.count("number 4")
    assert read(cast, collection, text="100%") == []
    part = read(cast, collection, header="part 3")
    assert part
    assert all("Part 3" in [*c.headings, *c.metadata.get("sections", [])] for c in part)
    assert len(read(cast, collection, header="part", header_match="contains")) >= 5
    assert read(cast, collection, header="part") == []
    assert read(cast, collection, header="%", header_match="contains") == []
    assert read(cast, collection, has_points=False) == []
    assert read(cast, collection, points_by="model") == []
    assert read(cast, collection, relation="any")
    assert read(cast, collection, relation="no_such") == []


@pytest.mark.parametrize(
    "where",
    [
        {"kinds": ("page",)},
        {"header": "a\x00"},
        {"text": "x" * 501},
        {"page": 2**31},
        {"document_id": -1},
        {"document_id": True},
        {"header_match": "like"},
    ],
)
def test_filter_is_refused_when_it_cannot_be_meant(
    cast: Cast, collection: Collection, where: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as refused:
        read(cast, collection, **where)
    assert refused.value.code == "filter_invalid"


@pytest.mark.parametrize("text", ["", "x", "W10", "bnVsbA", "WzEsMiwzLHsiYSI6MX1d", "é"])
def test_cursor_is_refused_when_it_was_not_made_here(text: str) -> None:
    with pytest.raises(Invalid):
        ReaderCursor.from_text(text)


def test_limited_documents_are_in_no_face_of_the_reader(
    cast: Cast, collection: Collection, lamps: Document, rules: Document
) -> None:
    limit(rules)
    actor, own = cast.actor("viewer"), chunks_of(rules)
    assert {c.document_id for c in read(cast, collection)} == {lamps.pk}
    assert read(cast, collection, document_id=rules.pk) == []
    only = ReaderCursor(collection.pk, ChunkFilter(document_id=rules.pk))
    with pytest.raises(Missing):
        reader.reader_jump(actor=actor, cursor=only, place=0)
    assert links.chunk_links(actor=actor, chunk=own[0], direction="both") == []
    assert links.chain_walk(actor=actor, chunk=own[0]) == []
    figures = chunk_statistics(actor=actor, collection=collection)
    assert (figures.documents, figures.chunks) == (1, len(chunks_of(lamps)))
    hidden = chunk_statistics(actor=actor, collection=collection, document=rules)
    assert (hidden.documents, hidden.chunks, hidden.coverage.share) == (0, 0, None)


def test_outsider_reads_nothing(cast: Cast, collection: Collection, lamps: Document) -> None:
    assert read(cast, collection, role="outsider") == []
    with tenant_scope(cast.other_tenant.pk):
        assert read(cast, collection, role="outsider") == []


def test_links_are_followed_in_both_directions(cast: Cast, rules: Document) -> None:
    actor, own = cast.actor("viewer"), chunks_of(rules)
    out = links.chunk_links(actor=actor, chunk=own[1])
    assert {link.relation for link in out} >= {"next", "previous"}
    assert [link.weight for link in out] == sorted((link.weight for link in out), reverse=True)
    into = links.chunk_links(actor=actor, chunk=own[1], direction="incoming", relation="next")
    assert [link.chunk for link in into] == [own[0]]
    assert all(link.made_by == "rule" for link in out)
    assert [link.chunk for link in links.chunk_links(actor=actor, chunk=own[1], relation="next")] == [own[2]]
    assert links.chunk_links(actor=actor, chunk=own[-1], relation="next") == []


def test_chain_ends_at_its_depth_and_never_comes_back(cast: Cast, rules: Document) -> None:
    actor, own = cast.actor("viewer"), chunks_of(rules)
    walked = links.chain_walk(actor=actor, chunk=own[0], depth=100)
    assert [s.chunk for s in walked] == own
    assert [s.relation for s in walked] == ["", *["next"] * (len(own) - 1)]
    assert len(links.chain_walk(actor=actor, chunk=own[0], depth=2)) == 3
    ChunkLink.objects.create(
        tenant=cast.tenant,
        document=rules,
        chunk=own[2],
        target=own[0],
        relation="loop",
        made_by=LinkOrigin.MODEL,
        weight=1,
    )
    ChunkLink.objects.create(
        tenant=cast.tenant,
        document=rules,
        chunk=own[0],
        target=own[2],
        relation="loop",
        made_by=LinkOrigin.MODEL,
        weight=1,
    )
    loop = links.chain_walk(actor=actor, chunk=own[0], relations=("loop",), depth=50)
    assert [s.chunk for s in loop] == [own[0], own[2]]
    anywhere = links.chain_walk(actor=actor, chunk=own[0], relations=(), depth=100)
    assert len({s.chunk.pk for s in anywhere}) == len(anywhere)
    with pytest.raises(DomainError):
        links.chain_walk(actor=actor, chunk=own[0], depth=101)


def test_statistics_count_what_the_tables_hold(
    cast: Cast, collection: Collection, lamps: Document, rules: Document
) -> None:
    every = chunks_of(lamps, rules)
    Chunk.objects.filter(pk=every[0].pk).update(is_disabled=True)
    figures = chunk_statistics(actor=cast.actor("viewer"), collection=collection)
    sizes = sorted(len(c.text) for c in every)
    assert (figures.documents, figures.chunks, figures.disabled, figures.edited) == (2, len(every), 1, 0)
    assert figures.kinds == {"doc": len(every)}
    assert (figures.sizes.min, figures.sizes.max, figures.sizes.total) == (sizes[0], sizes[-1], sum(sizes))
    assert figures.sizes.min <= figures.sizes.percentiles["50"] <= figures.sizes.max
    assert sum(link.count for link in figures.links) == ChunkLink.objects.count()
    covered: set[tuple[int, int]] = set()
    for chunk in every:
        covered |= {(chunk.document_id, n) for n in range(chunk.char_start, chunk.char_end)}
    assert figures.coverage.covered == len(covered)
    assert figures.coverage.share is not None
    assert 0.9 < figures.coverage.share <= 1
    one = chunk_statistics(actor=cast.actor("viewer"), collection=collection, document=lamps)
    assert one.chunks == len(chunks_of(lamps))


def test_each_read_costs_the_same_however_many_chunks(
    cast: Cast, collection: Collection, lamps: Document
) -> None:
    actor = cast.actor("viewer")

    def costs() -> list[int]:
        counted, first = [], chunks_of(lamps)[0]
        cursor = ReaderCursor(collection.pk)
        for call in (
            lambda: reader.reader_next(actor=actor, cursor=cursor),
            lambda: reader.reader_jump(actor=actor, cursor=cursor, place=-1),
            lambda: reader.reader_place(actor=actor, cursor=cursor),
            lambda: list(reader.chunk_rows(actor=actor, collection=collection)),
            lambda: [c.document.name for c in read(cast, collection, relation="any")],
            lambda: links.chunk_links(actor=actor, chunk=first, direction="both"),
            lambda: links.chain_walk(actor=actor, chunk=first, relations=(), depth=50),
            lambda: chunk_statistics(actor=actor, collection=collection),
        ):
            with CaptureQueriesContext(connection) as queries:
                call()
            counted.append(len(queries))
        return counted

    few = costs()
    ingest(cast, collection, "rules.md", LONG)
    assert costs() == few == [1, 1, 1, 1, 1, 2, 2, 4]
