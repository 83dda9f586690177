"""What a search may find: permitted, live or live then, not disabled, and matching every filter, in every leg."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.models import Chunk, Collection, Document, DocumentAccess
from apps.collections.search import LEGS, SearchResult, search_run
from basics.errors import Invalid
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest

pytestmark = pytest.mark.django_db
TUBES = b"# Duties\n\nThe duty on zirconium tubes of code 8109.90.00 is five percent.\n"
RODS = b"# Duties\n\nThe duty on zirconium rods of code 8109.20.00 is nine percent.\n"
QUERY = "zirconium duty 8109.90.00 8109.20.00"


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def tubes(cast: Cast, collection: Collection) -> Document:
    return ingest(cast, collection, "tubes.md", TUBES)


@pytest.fixture
def rods(cast: Cast, collection: Collection) -> Document:
    return ingest(cast, collection, "rods.md", RODS)


def ask(cast: Cast, role: str = "viewer", **extra: Any) -> SearchResult:
    extra = {"query": QUERY, "collections": None} | extra
    return search_run(tenant=cast.tenant, actor=cast.actor(role), **extra)


def names(found: SearchResult) -> set[str]:
    return {hit.document_name for hit in found.hits}


def change(document: Document, **values: Any) -> None:
    Document.objects.filter(pk=document.pk).update(**values)


@pytest.mark.parametrize("leg", LEGS)
def test_restricted_document_is_found_by_those_listed_alone(
    cast: Cast, tubes: Document, rods: Document, leg: str
) -> None:
    change(tubes, is_restricted=True)
    assert names(ask(cast, legs=(leg,))) == {"rods.md"}
    DocumentAccess.objects.create(tenant=cast.tenant, document=tubes, role="viewer")
    assert names(ask(cast, legs=(leg,))) == {"rods.md", "tubes.md"}
    assert names(ask(cast, "member", legs=(leg,))) == {"rods.md"}
    member = cast.actor("member")
    DocumentAccess.objects.create(tenant=cast.tenant, document=tubes, user_id=member.user_id)
    assert names(ask(cast, "member", legs=(leg,))) == {"rods.md", "tubes.md"}
    assert names(ask(cast, "owner", legs=(leg,))) == {"rods.md"}


@pytest.mark.parametrize("leg", LEGS)
def test_disabled_chunk_is_not_found(cast: Cast, tubes: Document, rods: Document, leg: str) -> None:
    Chunk.objects.filter(document=tubes).update(is_disabled=True)
    assert names(ask(cast, legs=(leg,))) == {"rods.md"}
    assert names(ask(cast, legs=(leg,), filters={"kind": "doc"})) == {"rods.md"}


@pytest.mark.parametrize("leg", LEGS)
def test_earlier_moment_is_answered_by_the_versions_of_then(
    cast: Cast, collection: Collection, tubes: Document, leg: str
) -> None:
    then = timezone.now()
    ingest(cast, collection, "tubes.md", RODS)
    now, before = ask(cast, legs=(leg,)), ask(cast, legs=(leg,), as_of=then)
    assert ["nine" in hit.text for hit in now.hits] == [True]
    assert ["five" in hit.text for hit in before.hits] == [True]
    early = tubes.created_at.replace(year=2000)
    assert ask(cast, legs=(leg,), as_of=early).hits == []


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"name": "tubes.md"}, {"tubes.md"}),
    ({"name": {"ne": "tubes.md"}}, {"rods.md"}),
    ({"name": {"in": ["tubes.md", "rods.md"]}}, {"tubes.md", "rods.md"}),
    ({"name": {"nin": ["tubes.md"]}}, {"rods.md"}),
    ({"name": {"prefix": "ro"}}, {"rods.md"}),
    ({"name": {"prefix": "%"}}, set()),
    ({"path": {"contains": "UBES"}}, {"tubes.md"}),
    ({"document_type": "duty"}, {"tubes.md"}),
    ({"tags": "steel"}, {"tubes.md"}),
    ({"tags": {"ne": "steel"}}, {"rods.md"}),
    ({"tags": {"all": ["steel", "old"]}}, {"tubes.md"}),
    ({"tags": {"all": ["steel", "new"]}}, set()),
    ({"tags": {"in": ["new", "old"]}}, {"tubes.md", "rods.md"}),
    ({"tags": {"nin": ["new"]}}, {"tubes.md"}),
    ({"dated": "2024-02-29"}, {"tubes.md"}),
    ({"dated": {"gte": "2024-01-01", "lt": "2024-12-31"}}, {"tubes.md"}),
    ({"dated": {"gt": "2024-02-29"}}, set()),
    ({"added": {"gte": "2020-01-01"}}, {"tubes.md", "rods.md"}),
    ({"kind": "doc"}, {"tubes.md", "rods.md"}),
    ({"kind": {"in": ["table", "function"]}}, set()),
    ({"headings": "duties"}, {"tubes.md", "rods.md"}),
    ({"headings": {"contains": "UTI"}}, {"tubes.md", "rods.md"}),
    ({"headings": "Lamps"}, set()),
    ({"attributes.author": "Ada"}, {"tubes.md"}),
    ({"attributes.author": {"ne": "Ada"}}, {"rods.md"}),
    ({"attributes.author": {"in": ["Ada", "Bob"]}}, {"tubes.md"}),
    ({"attributes.score": {"gte": 1.5}}, {"tubes.md"}),
    ({"attributes.score": 1.50}, {"tubes.md"}),
    ({"attributes.score": {"lt": 1.5}}, set()),
    ({"attributes.signed": {"gte": "2023-01-01"}}, {"tubes.md"}),
    ({"attributes.final": True}, {"tubes.md"}),
    ({"attributes.final": {"exists": False}}, {"rods.md"}),
    ({"attributes.topics": "metal"}, {"tubes.md"}),
    ({"attributes.it's {odd} %s": "x"}, {"tubes.md"}),
    ({"tags": "steel", "name": "rods.md"}, set()),
]


def test_every_filter_holds_in_every_leg(cast: Cast, tubes: Document, rods: Document) -> None:
    change(
        tubes,
        tags=["steel", "old"],
        document_type="duty",
        dated=date(2024, 2, 29),
        attributes={
            "author": "Ada",
            "score": 1.5,
            "signed": "2024-02-29",
            "final": True,
            "topics": ["metal", 3],
            "it's {odd} %s": "x",
        },
    )
    change(rods, tags=["new"])
    wrong = [
        f"{leg} {filters}: {found} instead of {expected}"
        for leg in LEGS
        for filters, expected in FILTERS
        if (found := names(ask(cast, filters=filters, legs=(leg,)))) != expected
    ]
    assert wrong == []


REFUSED: list[Any] = [
    {"colour": "red"},
    {"name": {"like": "a"}},
    {"tags": {"gte": "a"}},
    {"attributes.autor": "Ada"},
    {"attributes.author": {"prefix": "A"}},
    {"attributes.": 1},
    {"attributes.a.b": 1},
    {"page": {"in": [1]}},
    {"dated": "yesterday"},
    {"dated": {"gte": 5}},
    {"page": "1"},
    {"name": 5},
    {"name": {}},
    {"name": {"in": "a"}},
    {"attributes.author": {"gte": float("nan")}},
    {"attributes.author": {"exists": "yes"}},
    {"attributes.author": {"in": []}},
    {"attributes.author": [1]},
    {"name": "a\x00b"},
    {"document_id": 2**70},
    {"name": {"in": ["x"] * 1001}},
    [],
    "name",
    {"name": {"eq": "a", "ne": "b", "prefix": "c"} | {f"x{i}": 1 for i in range(3)}},
]


def test_every_filter_that_says_nothing_known_is_an_error(cast: Cast, tubes: Document) -> None:
    change(tubes, attributes={"author": "Ada"})

    def answer(filters: Any) -> str:
        try:
            return f"found {names(ask(cast, filters=filters))}"
        except Invalid as refused:
            return refused.code if refused.data else "no details"

    answers = [(str(filters)[:50], answer(filters)) for filters in REFUSED]
    assert [a for a in answers if a[1] not in ("filter_unknown", "filter_invalid")] == []


def test_neighbours_come_with_a_passage_without_what_they_share(cast: Cast, collection: Collection) -> None:
    text = "\n\n".join(
        f"Sentence {i} of the text speaks about topic{i} at some length here." * 3 for i in range(12)
    )
    document = ingest(cast, collection, "long.txt", text.encode())
    hit = ask(cast, query="topic6", k=1, expand=2).hits[0]
    full = " ".join([*hit.before, hit.text, *hit.after])
    assert len(hit.before) == len(hit.after) == 2
    page = "".join(document.pages.order_by("number").values_list("text", flat=True))
    assert " ".join(full.split()) in " ".join(page.split())
    assert ask(cast, query="topic6", k=1).hits[0].before == ()
    with pytest.raises(Invalid):
        ask(cast, expand=6)


def test_trace_tells_ranks_and_what_was_passed_over(
    cast: Cast, collection: Collection, tubes: Document, rods: Document
) -> None:
    ingest(cast, collection, "more.md", b"# Duties\n\nZirconium again, and its duty.\n")
    hidden = ingest(cast, collection, "hidden.md", b"# Duties\n\nZirconium in secret.\n")
    change(hidden, is_restricted=True)
    trace = ask(cast, "member", k=1, filters={"name": {"ne": "rods.md"}}, trace=True).trace
    assert trace is not None
    assert [c.outcome for c in trace.candidates] == ["returned", "beyond_k"]
    first = trace.candidates[0]
    assert (first.document_name, first.fused_rank) == ("tubes.md", 1)
    assert first.vector_rank == first.lexical_rank == first.exact_rank == 1
    assert trace.legs["vector"] == {"ran": True, "index": "scan", "candidates": 2}
    assert trace.hidden is not None
    assert (trace.hidden.filtered, trace.hidden.not_permitted) == (1, 1)
    assert trace.terms[:2] == ["zirconium", "duti"]
    viewer = ask(cast, "viewer", trace=True).trace
    assert viewer is not None
    assert viewer.hidden is not None
    assert viewer.hidden.not_permitted == 0  # how much is kept from one is not one's to know


def test_words_are_reduced_as_the_collections_language_does(cast: Cast, collection: Collection) -> None:
    Collection.objects.filter(pk=collection.pk).update(language="german")
    ingest(cast, collection, "de.txt", "Die Zölle auf Lampen wurden gesenkt.".encode())
    assert names(ask(cast, query="Lampe", legs=("lexical",))) == {"de.txt"}
    Collection.objects.filter(pk=collection.pk).update(language="simple")
    ingest(cast, collection, "de2.txt", "Die Zölle auf Lampen stiegen.".encode())
    assert "de2.txt" not in names(ask(cast, query="Lampe", legs=("lexical",)))
    assert "de2.txt" in names(ask(cast, query="Lampen", legs=("lexical",)))
