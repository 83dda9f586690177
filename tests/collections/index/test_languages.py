"""Passages in languages other than English: told, made into terms, found; and terms of an earlier form until they are new."""

from __future__ import annotations

from statistics import pstdev
from typing import Any

import pytest
from django.utils import timezone

from apps.collections.chunks import services as chunks_services
from apps.collections.documents import services as documents_services
from apps.collections.index import terms
from apps.collections.ingestion import lexical
from apps.collections.ingestion.covers import name_words
from apps.collections.ingestion.types import ChunkDraft
from apps.collections.models import (
    Chunk,
    ChunkTerms,
    Collection,
    Document,
    EmbeddingSpace,
    Stage,
    TermFrequency,
)
from apps.collections.pipeline import lexical_upgrade
from apps.collections.pipeline import run as pipeline
from apps.collections.search import SearchResult, search_run
from apps.collections.search.types import WEAK_VOTE
from apps.collections.storage.rows import chunk_indexed_text, chunks_write
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest

pytestmark = pytest.mark.django_db

TEXTS = {
    "zh.txt": "进口商必须在货物到达后十五天内提交报关单。关税税率取决于商品编号8539.50.00和原产国。",
    "zh2.txt": "葡萄酒的运输需要冷藏集装箱。酒瓶不得直接暴露在阳光下，否则质量会受到影响。",
    "ja.txt": "輸入者は貨物の到着後十五日以内に申告書を提出しなければならない。関税率は原産国によって異なる。",
    "th.txt": "ผู้นำเข้าต้องยื่นใบขนสินค้าภายในสิบห้าวันหลังจากสินค้ามาถึง อัตราภาษีขึ้นอยู่กับประเทศต้นกำเนิด",
    "de.txt": "Die Einfuhrzölle auf Lampen wurden im März gesenkt. Die Behörde hat das mit einer Verordnung geregelt, "
    "die nicht für Wein und Spirituosen gilt.",
    "ru.txt": "Пошлины на импортные лампы были снижены в марте. Это решение принял таможенный орган, которым "
    "руководит министр финансов.",
}
ENGLISH = (
    "The duties on lamps were lowered in March. This was done by the agency with a rule that is not for wine."
)
FAR = "Dolphins swim."
ASKED = {
    "报关单什么时候提交？": "zh.txt",
    "葡萄酒怎么运输？": "zh2.txt",
    "申告書はいつ提出しますか": "ja.txt",
    "ต้องยื่นใบขนสินค้าภายในกี่วัน": "th.txt",
    "Welche Zölle gelten für eine Lampe?": "de.txt",
    "Какая пошлина на лампу?": "ru.txt",
}


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def library(cast: Cast, collection: Collection) -> dict[str, Document]:
    return {name: chunks_made(cast, collection, name, text) for name, text in TEXTS.items()}


def chunks_made(cast: Cast, collection: Collection, name: str, text: str) -> Document:
    """Make a document of one chunk without reading a file, as an import of chunks does: all but the reader is real."""
    job = Job.objects.create(
        tenant=cast.tenant, kind="collections.document_ingest", status="running", worker="test"
    )
    document = Document.objects.create(
        tenant=cast.tenant,
        collection=collection,
        name=name,
        path=name,
        live_from=timezone.now(),
        media_type="text/plain",
        size=0,
        sha256=name.rjust(64, "0"),
        file="none",
        job=job,
        status="processing",
        stage=Stage.EMBED,
        chunk_count=1,
    )
    chunks_write(document, [ChunkDraft(0, text, 0, len(text), 1, 1)])
    pipeline.document_ingest(Context(job.pk), document_id=document.pk)
    document.refresh_from_db()
    return document


def ask(cast: Cast, query: str, **extra: Any) -> SearchResult:
    return search_run(tenant=cast.tenant, actor=cast.actor("viewer"), collections=None, query=query, **extra)


def first(cast: Cast, query: str, **extra: Any) -> str:
    return next((hit.document_name for hit in ask(cast, query, **extra).hits), "")


class Context:
    """What a job's context gives, stopping after some transactions as a killed worker would."""

    def __init__(self, job_id: int = 0, batches: int = 10_000) -> None:
        self.job_id, self.left, self.is_complete = job_id, batches, False

    def check(self) -> None:
        if self.left <= 0:
            raise KeyboardInterrupt
        self.left -= 1

    def give_way(self) -> None: ...

    def hold(self) -> None: ...

    def advanced(self) -> None: ...

    def complete(self) -> None:
        self.is_complete = True


def made_before(collection: Collection) -> None:
    """Give all rows the terms, and documents the forms, that version 1 has left behind after an upgrade's migration."""
    row = Collection.objects.get(pk=collection.pk)
    old = lexical.form_of("english", 1)
    for document in Document.objects.filter(collection=row):
        chunks = [terms.chunk_tokenise(c.pk, chunk_indexed_text(c), old) for c in document.chunks.all()]
        terms.terms_replace(collection=row, chunks=chunks, is_counted=document.is_live)
    Document.objects.filter(collection=row).update(lexical_form=old, language="")
    Collection.objects.filter(pk=row.pk).update(lexical_forms=[old])


def statistics(collection: Collection) -> tuple[Any, ...]:
    row = Collection.objects.get(pk=collection.pk)
    counted = TermFrequency.objects.filter(collection=row).order_by("term")
    return (row.term_total, row.chunk_total, list(counted.values_list("term", "chunks")))


def test_documents_are_told_and_found_in_their_language(cast: Cast, library: dict[str, Document]) -> None:
    told = {name: (d.language, d.lexical_form) for name, d in library.items()}
    assert told["zh.txt"] == ("Chinese", lexical.form_of("english"))
    assert told["ja.txt"][0] == "Japanese"
    assert told["th.txt"][0] == "Thai"
    assert told["de.txt"] == ("German", lexical.form_of("german"))
    assert told["ru.txt"] == ("Russian", lexical.form_of("russian"))
    assert {query: first(cast, query, legs=("lexical",)) for query in ASKED} == ASKED
    # A code between letters without spaces.
    assert first(cast, "8539.50.00", legs=("exact",)) == "zh.txt"
    assert first(cast, "８５３９．５０．００", legs=("lexical",)) == "zh.txt"


@pytest.mark.parametrize(
    ("model", "query", "votes"),
    [
        ("all-MiniLM-L6-v2", "When were the duties lowered?", {"en.txt": 1.0, "de.txt": WEAK_VOTE}),
        ("all-MiniLM-L6-v2", "March duties", {"en.txt": 1.0, "de.txt": WEAK_VOTE}),
        (
            "all-MiniLM-L6-v2",
            "Wann wurden die Zölle und die Steuern gesenkt?",
            dict.fromkeys(("en.txt", "de.txt"), WEAK_VOTE),
        ),
        (
            "another",
            "Wann wurden die Zölle und die Steuern gesenkt?",
            dict.fromkeys(("en.txt", "de.txt"), 1.0),
        ),
    ],
    ids=["English", "not plain", "German", "model of all languages"],
)
def test_model_counts_little_where_it_knows_the_language_of_question_or_passage_not(
    cast: Cast, collection: Collection, model: str, query: str, votes: dict[str, float]
) -> None:
    EmbeddingSpace.objects.filter(pk=collection.space_id).update(provider="local", model=model)
    texts = {"en.txt": ENGLISH, "de.txt": TEXTS["de.txt"], "far.txt": FAR}
    for name, text in texts.items():
        chunks_made(cast, collection, name, text)
    found = {h.document_name: h for h in ask(cast, query, legs=("vector",)).hits}
    distances = {name: hit.distance or 0.0 for name, hit in found.items()}
    least, spread = max(distances.values()), pstdev(distances.values())
    assert distances["far.txt"] == least
    for name, vote in votes.items():
        assert found[name].score == pytest.approx(vote * (least - distances[name]) / spread)


def test_rows_of_an_earlier_form_answer_as_before_until_they_are_made_again(
    cast: Cast, collection: Collection, library: dict[str, Document]
) -> None:
    wanted = statistics(collection)
    lengths = dict(ChunkTerms.objects.values_list("chunk_id", "length"))
    made_before(collection)
    assert statistics(collection) != wanted
    assert first(cast, "March wine", legs=("lexical",)) == ""
    assert first(cast, "Verordnung", legs=("lexical",)) == "de.txt"
    assert first(cast, "报关单什么时候提交？", legs=("lexical",)) == ""  # as version 1 did
    newer = ingest(cast, collection, "new.txt", "报关单由海关保存五年。".encode())
    assert first(cast, "报关单保存几年", legs=("lexical",)) == "new.txt"
    assert first(cast, "Verordnung", legs=("lexical",)) == "de.txt"
    documents_services.document_delete(tenant=cast.tenant, actor=cast.actor("owner"), document=newer)
    context = Context()
    lexical_upgrade.terms_upgrade(context, collection_id=collection.pk)
    assert context.is_complete
    assert statistics(collection) == wanted
    assert dict(ChunkTerms.objects.values_list("chunk_id", "length")) == lengths
    collection.refresh_from_db()
    assert all(lexical.is_current(form) for form in collection.lexical_forms)
    assert {query: first(cast, query, legs=("lexical",)) for query in ASKED} == ASKED


def test_upgrade_goes_on_where_it_was_killed_and_loses_no_question_between(
    cast: Cast, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical_upgrade, "BATCH", 2)
    parts = [f"第{n}章。" + f"编号{n}的商品必须缴纳关税，税率为百分之{n}。" * 60 for n in range(5)]
    document = ingest(cast, collection, "long.txt", "\n\n".join(parts).encode())
    wanted = statistics(collection)
    assert document.chunk_count > 4
    made_before(collection)
    with pytest.raises(KeyboardInterrupt):
        lexical_upgrade.terms_upgrade(Context(batches=2), collection_id=collection.pk)
    collection.refresh_from_db()
    assert set(collection.lexical_forms) == {"1:english", lexical.form_of("english")}
    chunk = Chunk.objects.filter(document=document).latest("index")
    chunks_services.chunk_edit(
        tenant=cast.tenant, actor=cast.actor("owner"), chunk=chunk, text="海豚在海里游泳。"
    )
    assert first(cast, "海豚游泳", legs=("lexical",)) == "long.txt"
    edited = Context()
    lexical_upgrade.terms_upgrade(edited, collection_id=collection.pk)
    assert edited.is_complete
    collection.refresh_from_db()
    assert collection.lexical_forms == [lexical.form_of("english")]
    assert first(cast, "海豚游泳", legs=("lexical",)) == "long.txt"
    document.refresh_from_db()
    assert "terms_upgraded" not in document.metadata
    assert statistics(collection)[1] == wanted[1]


def test_sweep_has_collections_of_an_earlier_form_upgraded_once(cast: Cast, collection: Collection) -> None:
    ingest(cast, collection, "zh.txt", TEXTS["zh.txt"].encode())
    jobs = Job.objects.filter(kind=lexical_upgrade.KIND)
    lexical_upgrade.terms_sweep()
    assert not jobs.exists()
    made_before(collection)
    for _ in range(2):
        lexical_upgrade.terms_sweep()
    assert [job.payload for job in jobs] == [{"collection": collection.pk}]


REPORT = """# Quarterly report

{company}, Inc.

For the quarterly period ended {period}. {company} files this with the Commission.

The report has not been audited. It shows assets, liabilities, income and cash flows of the company and of those that it
owns, as the rules of the Commission ask for, and it should be read with the report of the year before, which was audited.

# Risk factors

The company is exposed to changes in interest rates, exchange rates and the demand for its products.
"""


def test_passage_is_found_by_what_its_document_says_elsewhere(cast: Cast, collection: Collection) -> None:
    periods = {"Q1": "March 31, 2023", "Q3": "September 30, 2023"}
    for company in ("Acme", "Borealis"):
        for quarter, period in periods.items():
            text = REPORT.format(company=company, period=period)
            document = ingest(cast, collection, f"2023_{quarter}_{company[:4].upper()}.md", text.encode())
            name = f"2023 {quarter} {company[:4].upper()}"
            assert document.cover == f"Quarterly report · {name} · {company}, Inc · {period}"
    for legs in (("lexical",), ("vector",), ("vector", "lexical", "exact")):
        query = "To which changes in interest rates was Borealis exposed in the quarter ended March 31, 2023?"
        found = ask(cast, query, k=1, legs=legs).hits[0]
        assert (found.document_name, found.headings[-1:]) == ("2023_Q1_BORE.md", ["Risk factors"])
    # What stands in every passage identifies none: the exact leg and what is quoted stay as they were.
    assert not ask(cast, "2023_Q1_BORE", legs=("exact",)).hits
    assert "2023" not in found.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("2022 Q3 AAPL.pdf", "2022 Q3 AAPL"),
        ("annual_report_2023.docx", "annual report 2023"),
        ("第三季度报告.pdf", "第三季度报告"),
        ("4983.txt", ""),
        ("d41d8cd98f00b204e9800998ecf8427e.pdf", ""),
        ("550e8400-e29b-41d4-a716-446655440000.pdf", ""),
    ],
)
def test_name_of_a_file_counts_where_it_says_something(name: str, words: str) -> None:
    assert name_words(name) == words
