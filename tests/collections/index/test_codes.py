"""Codes in the index: found in every spelling, down and up the schedule, and made again where their form has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from apps.collections.chunks.services import chunk_edit
from apps.collections.index import code_patterns, codes
from apps.collections.ingestion.codes import CodesInvalid
from apps.collections.models import ChunkTerms, CodePatterns, Collection, Document
from apps.collections.search import CodeFound, SearchResult, search_run
from basics.errors import Denied
from jobs.context import JobCancelled
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import first_chunk, ingest
from tests.factories import make_collection

pytestmark = pytest.mark.django_db
SCHEDULE = b"# Taps\n\n8481.80.3055 Ball valves of iron, 5.6% ad valorem.\n\n# Pipes\n\n7320.20.10 Springs, helical, 3.2%.\n"
BARE = b"# Parts\n\nThese lines are covered:\n\n8409911040\n84133010\n848210\n"
PARTS = {"version": 1, "kinds": [{"name": "part", "pattern": r"\bPX[- ]?\d{4}\b", "keep": "letters_digits"}]}


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def asking(cast: Cast, collection: Collection) -> Any:
    def of(query: str, **more: Any) -> SearchResult:
        return search_run(
            tenant=cast.tenant, actor=cast.actor("viewer"), collections=[collection], query=query, **more
        )

    return of


def told(result: SearchResult) -> list[tuple[str, str]]:
    return [(code.canonical, code.found) for code in result.codes]


@pytest.fixture
def filled(cast: Cast, collection: Collection) -> list[Document]:
    noise = b"# Rates\n\n" + b" ".join(b"The rate of 8481 is %d percent." % n for n in range(60))
    named = (("schedule.md", SCHEDULE), ("parts.txt", BARE), ("noise.md", noise))
    return [ingest(cast, collection, name, text) for name, text in named]


def test_codes_are_found_first_in_every_spelling_or_told_to_be_elsewhere(filled: Any, asking: Any) -> None:
    for query, canonical, document in (
        ("What is the rate on 8481 80 3055 from Brazil in 2025?", "hts:8481803055", "schedule.md"),
        ("８４８１８０３０５５", "hts:8481803055", "schedule.md"),
        ("Is 8409.91.1040 covered?", "hts:8409911040", "parts.txt"),
        ("8413–30–10", "hts:84133010", "parts.txt"),
        ("subheading 8482.10", "hts:848210", "parts.txt"),
    ):
        result = asking(query)
        assert told(result) == [(canonical, "exact")]
        assert result.hits[0].document_name == document
        assert [hit.match for hit in result.hits].count("exact") == 1
    result = asking("8481.80.30")
    assert result.codes == (CodeFound("8481.80.30", "hts:84818030", "near", ("8481.80.3055",)),)
    assert result.hits[0].document_name == "schedule.md"
    result = asking("duty on 7320.20.1060")
    assert result.codes == (CodeFound("7320.20.1060", "hts:7320201060", "parent", ("7320.20.10",)),)
    assert (result.hits[0].document_name, result.hits[0].match) == ("schedule.md", "parent")
    result = asking("1234.56.78")
    assert told(result) == [("hts:12345678", "none")]
    assert not any(hit.match for hit in result.hits)
    assert told(asking("8481.80.3055 or 1234.56.78?")) == [
        ("hts:8481803055", "exact"),
        ("hts:12345678", "none"),
    ]
    assert asking("What changed on 2025-11-23 for 150000 people?").codes == ()


def test_code_in_very_many_chunks_is_found_all_the_same(
    cast: Cast, collection: Collection, asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What names a thing is no stop word, and longer codes under it must not push it out."""
    text = b"\n\n".join(
        b"# Line %d\n\nUnder 9903.01.25%02d, goods of kind k%d pay. It is so laid down here for all."
        % (n, n, n)
        for n in range(10, 90)
    )
    ingest(cast, collection, "below.md", text)
    ingest(cast, collection, "it.md", b"# Itself\n\nHeading 9903.01.25 is what everybody means.")
    result = asking("9903.01.25", k=3)
    assert told(result) == [("hts:99030125", "exact")]
    assert [hit.document_name for hit in result.hits] == ["it.md", "below.md", "below.md"]


def test_codes_of_documents_that_nobody_may_see_are_nowhere(
    cast: Cast, collection: Collection, filled: Any, asking: Any
) -> None:
    Document.objects.filter(name="schedule.md").update(is_restricted=True)
    assert told(asking("8481.80.3055")) == [("hts:8481803055", "none")]
    assert told(asking("8481.80.30")) == [("hts:84818030", "none")]
    assert told(asking("7320.20.1060")) == [("hts:7320201060", "none")]


class Going:
    """A job's context; ``stops`` at that check."""

    def __init__(self, stops: int = 0) -> None:
        self.left = stops

    def check(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise JobCancelled("stop")

    def _nothing(self) -> None:
        """Go on."""

    give_way = hold = advanced = _nothing


def _before_codes() -> None:
    """Make the index what it was before it held codes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms SET lexemes = array_to_tsvector(ARRAY (SELECT l FROM "
            "unnest(tsvector_to_array(lexemes)) AS l WHERE l NOT LIKE 'code:%%'))"
        )
    Document.objects.update(code_form="")


def test_old_rows_are_indexed_again_and_a_search_says_what_is_behind(
    cast: Cast, filled: Any, asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dict(ChunkTerms.objects.values_list("pk", "lexemes"))
    assert asking("8409911040").behind == 0
    _before_codes()
    printed, bare = asking("8481.80.3055"), asking("8409911040")
    assert (told(printed), printed.behind) == ([("hts:8481803055", "exact")], 3)
    assert (told(bare), bare.behind) == ([("hts:8409911040", "none")], 3)
    # The sweep of any process finds them, once for all.
    assert [codes.codes_sweep() for _ in range(2)] == [1, 1]
    assert Job.objects.filter(kind=codes.KIND).count() == 1
    # A worker that dies on the way leaves what it has done; its successor does the rest.
    monkeypatch.setattr(codes, "BATCH", 1)
    with pytest.raises(JobCancelled):
        codes.codes_reindex(Going(3), tenant_id=cast.tenant.pk)
    assert Document.objects.filter(code_form="1").count() < 3
    codes.codes_reindex(Going(), tenant_id=cast.tenant.pk)
    assert set(Document.objects.values_list("code_form", flat=True)) == {"1"}
    assert dict(ChunkTerms.objects.values_list("pk", "lexemes")) == rows
    assert codes.codes_reindex(Going(), tenant_id=cast.tenant.pk) == 0
    assert told(asking("8409911040")) == [("hts:8409911040", "exact")]


def test_patterns_of_a_workspace_count_for_it_alone(cast: Cast, collection: Collection, asking: Any) -> None:
    before = ingest(cast, collection, "before.md", b"# A\n\nThe pump PX-1234 is out of stock.")
    with tenant_scope(cast.other_tenant.pk):
        other = make_collection(cast.other_tenant, "Theirs")
    code_patterns.code_patterns_set(tenant=cast.tenant, actor=cast.actor("admin"), patterns=PARTS)
    assert Job.objects.filter(kind=codes.KIND, tenant=cast.tenant).count() == 1
    after = ingest(cast, collection, "after.md", b"# B\n\nThe pump px 5678 is here.")
    assert (told(asking("PX5678")), asking("PX5678").behind) == ([("part:px5678", "exact")], 1)
    codes.codes_reindex(Going(), tenant_id=cast.tenant.pk)
    before.refresh_from_db()
    assert before.code_form == after.code_form != "1"
    assert told(asking("Where is px1234?")) == [("part:px1234", "exact")]
    chunk = chunk_edit(
        tenant=cast.tenant, actor=cast.actor("member"), chunk=first_chunk(before), text="Now PX 4321."
    )
    assert told(asking("PX-4321")) == [("part:px4321", "exact")]
    assert chunk.is_edited
    with tenant_scope(cast.other_tenant.pk):
        theirs = search_run(
            tenant=cast.other_tenant, actor=cast.actor("outsider"), collections=[other], query="PX-5678"
        )
        assert theirs.codes == ()
        assert codes.code_kinds(cast.other_tenant.pk).own == ()
    code_patterns.code_patterns_set(tenant=cast.tenant, actor=cast.actor("admin"), patterns=None)
    assert not CodePatterns.objects.exists()
    assert asking("PX-5678").codes == ()


def test_patterns_need_the_right_and_must_be_sound(cast: Cast) -> None:
    with pytest.raises(Denied):
        code_patterns.code_patterns_set(tenant=cast.tenant, actor=cast.actor("viewer"), patterns=PARTS)
    slow = {"version": 1, "kinds": [{"name": "slow", "pattern": "(a|a)+$x"}]}
    with pytest.raises(CodesInvalid, match="too long"):
        code_patterns.code_patterns_set(tenant=cast.tenant, actor=cast.actor("admin"), patterns=slow)
    assert not CodePatterns.objects.exists()


def test_page_shows_saves_tries_and_refuses_patterns(cast: Cast, client: Client) -> None:
    client.force_login(cast.user("admin"))
    url = reverse("collections:code-patterns", args=[cast.tenant.slug])
    assert "docket" in client.get(url).content.decode()
    kept = client.post(url, {"patterns": json.dumps(PARTS)}, follow=True).content.decode()
    assert "Saved" in kept
    tried = client.post(
        url, {"patterns": json.dumps(PARTS), "text": "PX 1234 and 8481803055", "try": "1"}
    ).content.decode()
    assert "px1234" in tried
    assert "8481803055" in tried
    refused = client.post(url, {"patterns": "{"})
    assert refused.status_code == 422
    assert "isn&#x27;t JSON" in refused.content.decode()
    assert CodePatterns.objects.get().patterns == PARTS
    client.post(url, {"patterns": " "})
    assert not CodePatterns.objects.exists()
    client.force_login(cast.user("viewer"))
    assert client.get(url).status_code == 403
