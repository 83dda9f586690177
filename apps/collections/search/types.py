"""What a search takes and gives: plain values, no SQL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

LEAST_SPREAD = 0.001  # of a leg's measures; candidates nearer to each other than this are alike to it
# How much a model counts in a language that it has not learnt, beside 1 for a leg that knows what it says: it orders what
# no other leg tells apart, and finds what none other finds.
WEAK_VOTE = 0.05
DEPTH = 50  # candidates each leg hands to the fusion
MAX_K = 100
MAX_QUERY_CHARS = 4000
MAX_EXPAND = 5
Found = Literal["exact", "parent", "near", "none"]
LEGS = ("vector", "lexical", "exact")


@dataclass(frozen=True, slots=True)
class Graph:
    """The index over a collection's vectors in one space.

    Attributes:
        table: that has them, as SQL names it.
        last_chunk: the last one it covers.
        is_behind: the collection has later ones.
    """

    collection_id: int
    table: str
    last_chunk: int
    is_behind: bool = True


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The question in one space, and the collections that are searched with it.

    Attributes:
        scanned: collections without an index for this space.
        indexed: indexes of the others.
        dimensions: of the space.
        knows: languages that the model has learnt, by their English names; None for all.
        is_understood: False for a question in a language that it has not learnt.
    """

    space_id: int
    dimensions: int
    vector: str
    scanned: list[int]
    indexed: list[Graph] = field(default_factory=list)
    knows: tuple[str, ...] | None = None
    is_understood: bool = True

    def without_graphs(self) -> QueryVector:
        """Return the same with every collection scanned."""
        return replace(
            self, scanned=[*self.scanned, *(graph.collection_id for graph in self.indexed)], indexed=[]
        )


class Ranked(NamedTuple):
    """A row of the statement that ranks; a tuple, since a search makes up to 150 of them and reads most of them once.

    Attributes:
        cover: of its document, with its best passage alone; empty with its others.
        form: in which its document's terms are written, "" for one that no index knows.
        dated: its document's date, as people gave it.

    The others are those of ``SearchHit``.
    """

    score: float
    chunk_id: int
    document_id: int
    vector_rank: int | None
    lexical_rank: int | None
    exact_rank: int | None
    distance: float | None
    bm25: float | None
    cover: str
    form: str
    dated: date | None

    def scored(self, score: float) -> Ranked:
        """Return the row with another score."""
        return Ranked(score, *self[1:])


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A passage and how it was found.

    Attributes:
        version: number of the document's version.
        document_type: its document's, "" for none.
        score: fused; only its order means something.
        vector_rank: place among the nearest vectors, from 1; None if not among the first 50.
        lexical_rank: place by BM25.
        exact_rank: place among the chunks that hold an identifier of the question.
        distance: cosine distance of the vectors, 0 to 2.
        bm25: BM25 score.
        rerank_score: what the reranker gave, None without one.
        match: how it answers the codes of the question: ``exact``, ``near``, ``parent``, or "" for by its words.
        head: how plainly it tells of those codes, 0 where it mentions them; see ``apps.collections.search.heads``.
        before, after: texts of the neighbouring chunks asked for with ``expand``, in reading order, without what they
            share with this one.
        quotable: what may be quoted of it, as runs keep it; None where that has no place on a page, or was not asked.
    """

    chunk_id: int
    text: str
    index: int
    kind: str
    char_start: int
    char_end: int
    page_start: int | None
    page_end: int | None
    headings: list[str]
    metadata: dict[str, Any]
    collection_id: int
    document_id: int
    document_name: str
    version: int
    media_type: str
    score: float
    vector_rank: int | None
    lexical_rank: int | None
    exact_rank: int | None
    distance: float | None
    bm25: float | None
    document_type: str = ""
    rerank_score: float | None = None
    match: str = ""
    head: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    quotable: str | None = None

    @property
    def source_index(self) -> int | None:
        """Give the place that an imported chunk had in its source."""
        found = self.metadata.get("source_index")
        return found if isinstance(found, int) else None

    @property
    def is_exact(self) -> bool:
        """Tell whether the passage holds an identifier of the question."""
        return self.exact_rank is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """One chunk that a leg found, as the trace keeps it.

    Attributes:
        fused_rank: place after the fusion, from 1.
        rerank_rank: place after the reranker, None without one or beyond its depth.
        outcome: ``returned``, or why it was dropped: ``beyond_k``, ``reranked_below_k``.
    """

    chunk_id: int
    document_id: int
    document_name: str
    fused_rank: int
    score: float
    vector_rank: int | None
    lexical_rank: int | None
    exact_rank: int | None
    distance: float | None
    bm25: float | None
    rerank_rank: int | None
    outcome: str


@dataclass(frozen=True, slots=True)
class Hidden:
    """Documents of the scope that the search passed over, by reason; counted before ranking, in every leg.

    Attributes:
        not_ready: under way, failed or cancelled.
        not_live: earlier versions, or with ``as_of`` those that were not live then.
        not_permitted: limited to others.
        filtered: excluded by the filters.
        chunks_disabled: chunks switched off by hand.
    """

    not_ready: int = 0
    not_live: int = 0
    not_permitted: int = 0
    filtered: int = 0
    chunks_disabled: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """How a search came to its hits.

    Attributes:
        query: as asked.
        searched: as it was searched (rewritten, normalised).
        terms: stems that BM25 looked for.
        identifiers: exact codes and names recognised.
        legs: per leg ``ran``, ``index`` (``exact`` or the kind of index used), ``candidates``.
        candidates: every chunk that any leg found, best first.
        hidden: what was passed over before ranking, None when it was not asked for.
        timings_ms: ``embed``, ``database``, ``rerank``, ``expand``.
        reranker: what ordered the best passages anew, None where nothing did; the note of the result says why not.
    """

    query: str
    searched: str
    terms: list[str]
    identifiers: list[str]
    legs: dict[str, dict[str, Any]]
    candidates: list[Candidate]
    hidden: Hidden | None
    timings_ms: dict[str, float]
    reranker: str | None


@dataclass(frozen=True, slots=True)
class CodeFound:
    """What became of a code that was asked for.

    Attributes:
        code: as it is written in the question.
        canonical: kind and one form, such as ``hts:8481803055``.
        found: ``exact``: passages hold it. ``near``: it is not there by itself, but longer codes under it are.
            ``parent``: a shorter code that it stands under is there. ``none``: nothing of it is.
        others: the longer codes, or the shorter one, as the passages write them.
    """

    code: str
    canonical: str
    found: Found
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first, and how.

    Attributes:
        identifiers: exact codes and names recognised in the question.
        legs: which legs ran.
        codes: what became of the codes in the question; see ``apps.collections.search.codes``.
        behind: documents whose codes are still being indexed, asked for with codes alone: some spellings may miss them.
        note: a sentence when a leg or the reranker could not run, else "".
        embed_ms: time waited for the question's vectors; in large collections they are made beside the first statements.
        database_ms: time for the statements.
        as_of: the moment that was searched, None for now.
        trace: how it came to that, when it was asked for.
        reranker: what ordered the best passages anew, None where nothing did.
    """

    query: str
    hits: list[SearchHit]
    identifiers: list[str]
    legs: tuple[str, ...]
    note: str
    embed_ms: float
    database_ms: float
    as_of: datetime | None = None
    trace: Trace | None = None
    extra_ms: dict[str, float] = field(default_factory=dict)
    reranker: str | None = None
    codes: tuple[CodeFound, ...] = ()
    behind: int = 0

    @property
    def elapsed_ms(self) -> float:
        """Give the whole time."""
        return self.embed_ms + self.database_ms + sum(self.extra_ms.values())
