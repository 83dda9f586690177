"""What the REST API of search takes and gives."""

from __future__ import annotations

from typing import Any, get_args

from rest_framework import serializers

from apps.collections.search import FIELDS, LEGS, MAX_K, MAX_QUERY_CHARS, OPERATORS
from apps.collections.search.types import MAX_EXPAND, Found

_BIGINT = 2**63 - 1


class SearchInput(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=1000,
        help_text="Ids of collections; default: all in the workspace.",
    )
    k = serializers.IntegerField(required=False, default=10, min_value=1, max_value=MAX_K)
    filters = serializers.DictField(
        required=False,
        help_text='`{"media_type": "application/pdf"}` or `{"document_id": {"in": [1, 2]}}`. Fields: '
        + ", ".join(FIELDS)
        + ". Operators: "
        + ", ".join(OPERATORS)
        + ". An unknown one is an error.",
    )
    legs = serializers.ListField(
        child=serializers.ChoiceField(choices=list(LEGS)),
        required=False,
        min_length=1,
        max_length=len(LEGS),
        help_text="Ways to search; default: all.",
    )
    as_of = serializers.DateTimeField(
        required=False, allow_null=True, help_text="Search the versions that were live then."
    )
    snapshot = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=_BIGINT,
        help_text="Id of a named moment to search as of, in place of as_of.",
    )
    expand = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_EXPAND,
        help_text="Neighbours to return with each passage, on each side.",
    )
    trace = serializers.BooleanField(
        required=False, default=False, help_text="Return how the search found its result."
    )

    class Meta:
        ref_name = "Search"


class SearchHitOutput(serializers.Serializer[Any]):
    chunk_id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    document_name = serializers.CharField()
    media_type = serializers.CharField()
    index = serializers.IntegerField()
    kind = serializers.CharField(help_text="doc, table, function, class or file.")
    source_index = serializers.IntegerField(
        allow_null=True, help_text="The chunk_index that an imported passage had in its source."
    )
    text = serializers.CharField()
    page_start = serializers.IntegerField(allow_null=True)
    page_end = serializers.IntegerField(allow_null=True)
    headings = serializers.ListField(child=serializers.CharField())
    score = serializers.FloatField(help_text="Fused score; only the order is meaningful.")
    vector_rank = serializers.IntegerField(allow_null=True)
    lexical_rank = serializers.IntegerField(allow_null=True)
    exact_rank = serializers.IntegerField(allow_null=True)
    distance = serializers.FloatField(allow_null=True, help_text="Cosine distance.")
    bm25 = serializers.FloatField(allow_null=True)
    before = serializers.ListField(
        child=serializers.CharField(), help_text="Texts of the passages before it, as requested with expand."
    )
    after = serializers.ListField(child=serializers.CharField())

    class Meta:
        ref_name = "SearchHit"


class CandidateOutput(serializers.Serializer[Any]):
    chunk_id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    document_name = serializers.CharField()
    fused_rank = serializers.IntegerField()
    score = serializers.FloatField()
    vector_rank = serializers.IntegerField(allow_null=True)
    lexical_rank = serializers.IntegerField(allow_null=True)
    exact_rank = serializers.IntegerField(allow_null=True)
    distance = serializers.FloatField(allow_null=True)
    bm25 = serializers.FloatField(allow_null=True)
    rerank_rank = serializers.IntegerField(allow_null=True)
    outcome = serializers.CharField(help_text="`returned`, or why it was dropped.")

    class Meta:
        ref_name = "SearchCandidate"


class HiddenOutput(serializers.Serializer[Any]):
    not_ready = serializers.IntegerField()
    not_live = serializers.IntegerField()
    not_permitted = serializers.IntegerField(help_text="Only for people who can write documents.")
    filtered = serializers.IntegerField()
    chunks_disabled = serializers.IntegerField()

    class Meta:
        ref_name = "SearchHidden"


class TraceOutput(serializers.Serializer[Any]):
    query = serializers.CharField()
    searched = serializers.CharField()
    terms = serializers.ListField(child=serializers.CharField())
    identifiers = serializers.ListField(child=serializers.CharField())
    legs = serializers.DictField(child=serializers.DictField())
    candidates = CandidateOutput(many=True)
    hidden = HiddenOutput(allow_null=True, help_text="Documents skipped before ranking.")
    timings_ms = serializers.DictField(child=serializers.FloatField())
    reranker = serializers.CharField(
        allow_null=True, help_text="What reordered the best passages; null if nothing did."
    )

    class Meta:
        ref_name = "SearchTrace"


class CodeOutput(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="As written in the question.")
    canonical = serializers.CharField(help_text="Its kind and one form, such as `hts:8481803055`.")
    found = serializers.ChoiceField(
        choices=get_args(Found),
        help_text="`exact`: passages contain it. `near`: only longer codes below it were found. `parent`: "
        "only a shorter code above it was found. `none`: nothing was found.",
    )
    others = serializers.ListField(
        child=serializers.CharField(),
        help_text="The longer codes, or the shorter one, as the passages write them.",
    )

    class Meta:
        ref_name = "SearchCode"


class SearchOutput(serializers.Serializer[Any]):
    query = serializers.CharField()
    hits = SearchHitOutput(many=True)
    identifiers = serializers.ListField(
        child=serializers.CharField(), help_text="Exact codes and names found in the question."
    )
    codes = CodeOutput(many=True, help_text="What was found for each code in the question.")
    behind = serializers.IntegerField(
        help_text="Documents whose codes are still being indexed; some spellings may not find them yet."
    )
    legs = serializers.ListField(child=serializers.CharField(), help_text="Ways that were searched.")
    note = serializers.CharField(
        help_text="What a reader should know about the search: a way that could not be searched, or that "
        "newer documents were preferred."
    )
    embed_ms = serializers.FloatField()
    database_ms = serializers.FloatField()
    as_of = serializers.DateTimeField(allow_null=True)
    trace = TraceOutput(allow_null=True)

    class Meta:
        ref_name = "SearchResult"


class SearchCaseInput(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    chunks = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        max_length=100,
        help_text="Ids of the passages that should answer it.",
    )
    filters = serializers.DictField(required=False)
    k = serializers.IntegerField(required=False, default=10, min_value=1, max_value=MAX_K)
    note = serializers.CharField(required=False, allow_blank=True, max_length=2000)

    class Meta:
        ref_name = "SearchCaseInput"


class SpanOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    char_start = serializers.IntegerField()
    char_end = serializers.IntegerField()

    class Meta:
        ref_name = "Span"


class SearchCaseOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    query = serializers.CharField()
    filters = serializers.DictField()
    k = serializers.IntegerField()
    expected = SpanOutput(many=True, help_text="Places in documents; those you can't see are left out.")
    note = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "SearchCase"


class SnapshotInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    at = serializers.DateTimeField(required=False, help_text="The moment; default: now.")

    class Meta:
        ref_name = "SnapshotInput"


class SnapshotOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    name = serializers.CharField()
    at = serializers.DateTimeField()

    class Meta:
        ref_name = "Snapshot"
