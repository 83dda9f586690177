"""Search: only ready documents of this tenant, every filter obeyed, codes found exactly, ranks told."""

from __future__ import annotations

from datetime import date
from statistics import pstdev
from typing import Any

import pytest
from django.db import connection

from apps.collections.documents import services
from apps.collections.ingestion import lexical
from apps.collections.models import Chunk, Collection, Document, Embedding
from apps.collections.search import SearchResult, search_run
from apps.collections.search.types import DEPTH
from basics.errors import Denied, Invalid, Missing
from tenancy.actors import Actor
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest
from tests.factories import make_collection, make_space

pytestmark = pytest.mark.django_db
WINE = b"# Wine\n\nSparkling wine of heading 2204.10.00 pays by the litre, and the price does not matter.\n"


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def ask(cast: Cast, collections: list[Collection] | None, query: str, **extra) -> SearchResult:
    return search_run(
        tenant=cast.tenant, actor=cast.actor("viewer"), collections=collections, query=query, **extra
    )


def test_passage_comes_first_with_its_ranks(cast: Cast, collection: Collection) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    result = ask(cast, [collection], "Which pumps come from Brazil?")
    first = result.hits[0]
    assert "Pumps for liquids" in first.text
    row = Chunk.objects.get(pk=first.chunk_id)
    assert (first.headings, first.metadata) == (row.headings, row.metadata)
    assert (first.document_id, first.document_name) == (document.pk, "lamps.md")
    assert (first.vector_rank, first.lexical_rank, first.exact_rank) == (1, 1, None)
    assert first.score > max(hit.score for hit in result.hits[1:])
    assert result.legs == ("vector", "lexical", "exact")
    assert result.note == ""


def test_score_is_how_far_each_leg_sees_a_passage_above_its_last(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    Document.objects.filter(collection=collection).update(cover="")
    hits = ask(cast, [collection], "Which pumps and lamps come from Brazil?").hits
    nearness = {hit.chunk_id: -(hit.distance or 0.0) for hit in hits}
    bm25 = {hit.chunk_id: hit.bm25 or 0.0 for hit in hits}
    assert len(hits) > 2
    near, told = pstdev(nearness.values()), pstdev([*bm25.values(), *[0.0] * (DEPTH - len(bm25))])
    for hit in hits:
        own = (nearness[hit.chunk_id] - min(nearness.values())) / near + bm25[hit.chunk_id] / told
        assert hit.score == pytest.approx(own)


def test_legs_to_which_all_is_alike_say_nothing(cast: Cast, collection: Collection) -> None:
    for number in range(3):
        ingest(
            cast, collection, f"copy{number}.md", b"# Lamps\n\nLED lamps come from Brazil." + b"\n" * number
        )
    hits = ask(cast, [collection], "Where do lamps come from?", legs=("vector",)).hits
    assert [hit.score for hit in hits] == [0.0] * 3


def test_code_is_found_exactly_and_told_so(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    for code, words in (
        ("8539.50.00", "LED lamps"),
        ("inv-100234", "LED lamps"),
        ("2204.10.00", "Sparkling"),
    ):
        result = ask(cast, [collection], f"What is {code}?")
        assert result.identifiers == [code]
        assert words in result.hits[0].text
        assert result.hits[0].is_exact
        assert not any(hit.is_exact for hit in result.hits[1:])


def test_longer_code_is_found_by_its_beginning(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    hits = ask(cast, [collection], "8539.50", legs=("exact",)).hits
    assert len(hits) == 1
    assert "8539.50.00" in hits[0].text


def test_bm25_is_the_textbook_formula(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    collection.refresh_from_db()
    from apps.collections.index import terms
    from apps.collections.storage.rows import chunk_indexed_text

    query = "does the price of lamps matter"
    texts = {
        c.pk: terms.chunk_tokenise(c.pk, chunk_indexed_text(c), cover=c.document.cover).terms
        for c in Chunk.objects.all()
    }
    expected = {}
    for pk, words in texts.items():
        weights = lexical.tf_weights(words, collection.average_length)
        score = 0.0
        for term in lexical.query_term_ids(query):
            with_term = sum(term in lexical.tf_weights(w, 1) for w in texts.values())
            score += weights.get(term, 0) * lexical.idf(len(texts), with_term)
        if score > 0:
            expected[pk] = score
    found = {h.chunk_id: h.bm25 for h in ask(cast, [collection], query, legs=("lexical",)).hits}
    assert found == pytest.approx(expected, rel=1e-4)
    assert len(found) >= 2


def test_other_tenants_chunks_are_never_found(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    outsider = cast.actor("outsider")
    with tenant_scope(cast.other_tenant.pk):
        everything = search_run(
            tenant=cast.other_tenant, actor=outsider, collections=None, query="8539.50.00"
        )
        assert everything.hits == []
        with pytest.raises(Missing):
            search_run(tenant=cast.other_tenant, actor=outsider, collections=[collection], query="lamps")
        collection.tenant_id = cast.other_tenant.pk  # a forged row: the database still refuses
        for legs in (("vector",), ("lexical",), ("exact",)):
            forged = search_run(
                tenant=cast.other_tenant,
                actor=outsider,
                collections=[collection],
                query="8539.50.00 lamps",
                legs=legs,
            )
            assert forged.hits == []


def test_actor_of_another_tenant_is_refused(cast: Cast, collection: Collection) -> None:
    with pytest.raises(Missing):
        search_run(tenant=cast.tenant, actor=cast.actor("outsider"), collections=None, query="x")


def test_actor_without_the_right_is_refused(cast: Cast) -> None:
    nobody = Actor("api_key", cast.tenant.pk, frozenset({"collection.read"}))
    with pytest.raises(Denied):
        search_run(tenant=cast.tenant, actor=nobody, collections=None, query="x")


@pytest.mark.parametrize("status", ["failed", "processing", "cancelled", "queued"])
def test_chunks_are_not_found_while_their_document_is_not_ready(
    cast: Cast, collection: Collection, status: str
) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    Document.objects.filter(pk=document.pk).update(status=status)
    for legs in (("vector",), ("lexical",), ("exact",)):
        for filters in (None, {"document_id": document.pk}):
            hits = ask(cast, [collection], "LED lamps 8539.50.00", legs=legs, filters=filters).hits
            assert document.pk not in {hit.document_id for hit in hits}


def test_deleted_document_leaves_nothing_to_find(
    cast: Cast, collection: Collection, storage, django_capture_on_commit_callbacks
) -> None:
    document = ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, collection, "wine.md", WINE)
    with django_capture_on_commit_callbacks(execute=True):
        services.document_delete(tenant=cast.tenant, actor=cast.actor("member"), document=document)
    result = ask(cast, [collection], "LED lamps 8539.50.00 pumps Brazil")
    assert {hit.document_name for hit in result.hits} <= {"wine.md"}
    assert not Embedding.objects.filter(document_id=document.pk).exists()
    assert not (storage / document.file).exists()


def test_filters_hold_in_every_leg(cast: Cast, collection: Collection) -> None:
    lamps = ingest(cast, collection, "lamps.md", LAMPS)
    wine = ingest(cast, collection, "wine.txt", WINE)
    for legs in (("vector",), ("lexical",), ("exact",), ("vector", "lexical", "exact")):
        for filters, expected in (
            ({"document_id": lamps.pk}, {lamps.pk}),
            ({"document_id": {"in": [wine.pk]}}, {wine.pk}),
            ({"media_type": "text/plain"}, {wine.pk}),
            ({"media_type": {"in": ["text/plain"]}, "document_id": {"eq": lamps.pk}}, set()),
            ({"document_id": {"in": []}}, set()),
        ):
            hits = ask(
                cast, [collection], "lamps wine 8539.50.00 2204.10.00 heading", legs=legs, filters=filters
            ).hits
            assert {hit.document_id for hit in hits} == expected, (legs, filters)


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ({"color": "red"}, "filter_unknown"),
        ({"document_id": {"lt": 3}}, "filter_unknown"),
        ({"document_id": "3"}, "filter_invalid"),
        ({"document_id": True}, "filter_invalid"),
        ({"document_id": {"in": "3"}}, "filter_invalid"),
        ({"document_id": 2**70}, "filter_invalid"),
        ({"media_type": 5}, "filter_invalid"),
        ({"media_type": {}}, "filter_invalid"),
    ],
)
def test_filter_is_an_error_when_it_is_not_understood(
    cast: Cast, collection: Collection, filters: dict[str, Any], code: str
) -> None:
    with pytest.raises(Invalid) as refused:
        ask(cast, [collection], "lamps", filters=filters)
    assert (refused.value.code, refused.value.status) == (code, 400)


@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE collections_chunk; --",
        "%s %(tenant)s",
        "{1:2}/3",
        "id:a'b\\c.1",
        "a_b'::tsquery",
        "\x00lamps",
        "😀 c++ !!! (((",
        "100% of 8539.50.00",
    ],
)
def test_question_of_any_characters_is_only_a_question(
    cast: Cast, collection: Collection, query: str
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    assert ask(cast, [collection], query).query


@pytest.mark.parametrize("query", ["", "   ", "x" * 4001])
def test_question_is_refused_when_empty_or_too_long(cast: Cast, query: str) -> None:
    with pytest.raises(Invalid, match="Enter a question"):
        ask(cast, None, query)


def test_stop_words_alone_find_by_meaning_only(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    hits = ask(cast, [collection], "is it of the").hits
    assert hits
    assert {hit.lexical_rank for hit in hits} == {None}


def test_collections_of_several_spaces_are_searched_together(cast: Cast, collection: Collection) -> None:
    other = make_collection(cast.tenant, "Wine", space=make_space(fingerprint="second"))
    ingest(cast, collection, "lamps.md", LAMPS)
    ingest(cast, other, "wine.md", WINE)
    hits = ask(cast, None, "heading of wine and lamps").hits
    assert {hit.collection_id for hit in hits[:2]} == {collection.pk, other.pk}
    assert [hit.vector_rank for hit in hits[:2]] == [1, 1], "each space ranks its own vectors"


def test_words_still_work_and_it_is_said_when_the_embedder_fails(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.collections.embedders.base import EmbeddingError

    ingest(cast, collection, "lamps.md", LAMPS)

    def fails(space, *, tenant):
        raise EmbeddingError("embedder_unavailable", "The provider is down.")

    monkeypatch.setattr("apps.collections.search.run.embedder_for", fails)
    result = ask(cast, [collection], "pumps from Brazil")
    assert "Pumps for liquids" in result.hits[0].text
    assert result.legs == ("lexical", "exact")
    assert "The provider is down." in result.note


def test_search_ranks_in_one_statement_and_reads_what_is_shown_in_another(
    cast: Cast, collection: Collection, django_assert_num_queries
) -> None:
    """Besides the forms of terms and the money held.

    An embedder that costs nothing (the local one) needs no money held; the one of these tests counts as a paid one. In
    which forms terms are to be asked for is read anew each time: a document may have brought one a moment ago.
    """
    ingest(cast, collection, "lamps.md", LAMPS)
    with django_assert_num_queries(4):
        ask(cast, [collection], "LED lamps")
    # A code: which kinds the workspace has, and whether all documents are indexed by them.
    with django_assert_num_queries(6):
        ask(cast, [collection], "LED lamps 8539.50.00")


def test_texts_are_read_of_the_passages_shown_alone(cast: Cast, collection: Collection) -> None:
    for number in range(12):
        ingest(
            cast, collection, f"pumps-{number}.md", f"# Pumps {number}\n\nPumps of kind {number}.".encode()
        )
    whole: list[list[int]] = []
    ranked: list[str] = []

    def watched(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "fused AS" in sql:
            ranked.append(sql)
        if "c.text" in sql:
            whole.append(params["chunks"])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watched):
        hits = ask(cast, [collection], "Which pumps are there?", k=3).hits
    assert len(hits) == 3
    assert whole == [[hit.chunk_id for hit in hits]]
    assert len(ranked) == 1
    assert "collections_chunk c ON" not in ranked[0]  # ids and covers: no passage is looked at to rank it
    assert "c.metadata" not in ranked[0]


def test_passage_deleted_between_ranking_and_reading_is_left_out(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    gone = ingest(cast, collection, "wine.md", WINE)
    is_gone = False

    def deletes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_gone
        if "c.text" in sql and not is_gone:
            is_gone = True
            Document.objects.filter(pk=gone.pk).delete()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(deletes):
        hits = ask(cast, [collection], "wine and lamps").hits
    assert is_gone
    assert {hit.document_name for hit in hits} == {"lamps.md"}


def test_newer_document_comes_first_when_the_question_asks_for_the_latest(
    cast: Cast, collection: Collection
) -> None:
    text = "# Duty\n\nThe duty on lamps is {} percent of their value."
    for year in (2021, 2024, 2023, 2022):
        row = ingest(cast, collection, f"r{year}.md", text.format(year - 2000).encode())
        Document.objects.filter(pk=row.pk).update(dated=date(year, 5, 1), cover="")
    plain = ingest(cast, collection, "undated.md", text.format(7).encode())
    Document.objects.filter(pk=plain.pk).update(cover="")
    asked = "What is the {} duty on lamps?"
    result = ask(cast, [collection], asked.format("latest"))
    names = [hit.document_name for hit in result.hits]
    assert names[:2] == ["r2024.md", "r2023.md"]
    assert set(names) == {"r2021.md", "r2022.md", "r2023.md", "r2024.md", "undated.md"}  # none is hidden
    assert "“latest”" in result.note
    assert "from newer documents come first" in result.note
    without = ask(cast, [collection], asked.format("German"))
    assert without.note == ""
    # What is about something else does not come first by its date.
    wine = ingest(cast, collection, "wine.md", WINE)
    Document.objects.filter(pk=wine.pk).update(dated=date(2026, 1, 1))
    assert ask(cast, [collection], asked.format("current")).hits[0].document_name == "r2024.md"
    Document.objects.filter(collection=collection).update(dated=None)
    assert "have no date" in ask(cast, [collection], asked.format("newest")).note


def test_report_of_the_quarter_that_is_asked_for_comes_first(cast: Cast, collection: Collection) -> None:
    text = """# Quarterly report

    FORM 10-Q of {company}, Inc. for the quarterly period ended {end}.

    Net sales of lamps grew by {number} percent, and the gross margin was higher than a year before.
    """
    days = ("June 30, 2022", "September 30, 2022", "March 31, 2023", "June 30, 2023")
    for number, (company, end) in enumerate((c, end) for end in days for c in ("Acme", "Borealis")):
        said = text.format(company=company, end=end, number=number)
        ingest(cast, collection, f"{company}-{end[:3]}-{number}.md".lower(), said.encode())
    wine = ingest(cast, collection, "wine.md", WINE)
    Document.objects.filter(pk=wine.pk).update(dated=date(2026, 1, 1))

    def first(query: str) -> str:
        return ask(cast, [collection], query).hits[0].document_name

    assert first("What was the gross margin of Borealis in Q3 2022?") == "borealis-sep-3.md"
    assert first("gross margin of Acme in the first quarter of 2023") == "acme-mar-4.md"
    assert first("Borealis, net sales in the three months ended June 30, 2022") == "borealis-jun-1.md"
    assert first("What was the gross margin of Acme in the latest quarter?") == "acme-jun-6.md"
    assert first("Wie hoch war die Bruttomarge von Borealis im neuesten Bericht?") == "borealis-jun-7.md"
    assert len(ask(cast, [collection], "gross margin of Acme in Q3 2022", k=20).hits) == 9  # none is hidden


def test_identifier_that_stands_everywhere_identifies_nothing(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.collections.search.statement.MAX_CHUNKS_PER_IDENTIFIER", 1)
    ingest(cast, collection, "a.txt", b"In FY2022 the report names code 8539.50.00 once.")
    ingest(cast, collection, "b.txt", b"In FY2022 the other report names code 2204.10.00 once.")
    hits = ask(cast, [collection], "FY2022 8539.50.00", legs=("exact",)).hits
    assert [hit.document_name for hit in hits] == ["a.txt"]
