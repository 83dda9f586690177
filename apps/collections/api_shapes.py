"""What the REST API of collections takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.collections.models import DocumentStatus, Stage
from apps.collections.search import LEGS, MAX_K, MAX_QUERY_CHARS
from apps.collections.services import CHUNK_SIZES

_BIGINT = 2**63 - 1


class CollectionInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    description = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    chunk_size = serializers.IntegerField(
        required=False, min_value=CHUNK_SIZES[0], max_value=CHUNK_SIZES[1], help_text="Characters per chunk, at most; 1200 if not given."
    )  # fmt: skip
    chunk_overlap = serializers.IntegerField(
        required=False, min_value=0, max_value=CHUNK_SIZES[1] // 2, help_text="Less than half of chunk_size; 200 if not given."
    )  # fmt: skip


class CollectionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    chunk_size = serializers.IntegerField()
    chunk_overlap = serializers.IntegerField()
    embedding_space = serializers.CharField(source="space", help_text="Model of the vectors.")
    document_count = serializers.IntegerField()
    processing_count = serializers.IntegerField()
    failed_count = serializers.IntegerField()
    chunk_count = serializers.IntegerField(help_text="Chunks that can be searched.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Collection"


class UploadInput(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="The file; its name is kept.")

    class Meta:
        ref_name = "Upload"


class DocumentOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    name = serializers.CharField()
    title = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    sha256 = serializers.CharField()
    status = serializers.ChoiceField(choices=DocumentStatus.choices)
    stage = serializers.ChoiceField(
        choices=Stage.choices, help_text="The stage that runs, or the one where it failed."
    )
    progress_current = serializers.IntegerField()
    progress_total = serializers.IntegerField()
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    page_count = serializers.IntegerField()
    skipped_pages = serializers.IntegerField()
    chunk_count = serializers.IntegerField()
    vector_count = serializers.IntegerField()
    lexical_count = serializers.IntegerField()
    identifiers_total = serializers.IntegerField(
        help_text="Distinct codes and numbers of the original."
    )
    identifiers_found = serializers.IntegerField(help_text="Of them found in some chunk.")
    timings = serializers.DictField(child=serializers.FloatField(), help_text="Seconds per stage.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Document"


class UploadOutput(DocumentOutput):
    created = serializers.BooleanField(
        help_text="False when the collection had a document with the same bytes: that one is returned."
    )

    class Meta:
        ref_name = "UploadedDocument"


class LedgerOutput(serializers.Serializer[Any]):
    pages = serializers.IntegerField(source="found.pages")
    skipped = serializers.IntegerField(source="found.skipped")
    chunks = serializers.IntegerField(source="found.chunks")
    vectors = serializers.IntegerField(source="found.vectors")
    lexical = serializers.IntegerField(source="found.lexical")
    agrees = serializers.BooleanField(
        help_text="Whether the document's counts are what the tables hold."
    )

    class Meta:
        ref_name = "Ledger"


class DocumentDetailOutput(DocumentOutput):
    ledger = LedgerOutput()

    class Meta:
        ref_name = "DocumentDetail"


class ChunkOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    citation_id = serializers.SerializerMethodField(help_text="How answers cite it, c<id>.")
    collection_id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    document_name = serializers.CharField(source="document.name")
    index = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    char_start = serializers.IntegerField()
    char_end = serializers.IntegerField()
    page_start = serializers.IntegerField(allow_null=True)
    page_end = serializers.IntegerField(allow_null=True)
    headings = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()
    previous_id = serializers.IntegerField(
        allow_null=True, help_text="The chunk before it in the document."
    )
    next_id = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "Chunk"

    def get_citation_id(self, chunk: Any) -> str:
        return f"c{chunk.pk}"


class SearchInput(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=MAX_QUERY_CHARS)
    collections = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT), required=False, max_length=1000,
        help_text="Ids of collections; without it, all of the workspace.",
    )  # fmt: skip
    k = serializers.IntegerField(required=False, default=10, min_value=1, max_value=MAX_K)
    filters = serializers.DictField(
        required=False,
        help_text='`{"media_type": "application/pdf"}` or `{"document_id": {"in": [1, 2]}}`; fields document_id and '
        "media_type, operators eq and in. An unknown one is an error.",
    )
    legs = serializers.ListField(
        child=serializers.ChoiceField(choices=list(LEGS)), required=False, min_length=1, max_length=len(LEGS),
        help_text="Ways to search; without it, all.",
    )  # fmt: skip

    class Meta:
        ref_name = "Search"


class SearchHitOutput(serializers.Serializer[Any]):
    chunk_id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    document_name = serializers.CharField()
    media_type = serializers.CharField()
    index = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    page_start = serializers.IntegerField(allow_null=True)
    page_end = serializers.IntegerField(allow_null=True)
    headings = serializers.ListField(child=serializers.CharField())
    score = serializers.FloatField(help_text="Fused score; only its order means something.")
    vector_rank = serializers.IntegerField(allow_null=True)
    lexical_rank = serializers.IntegerField(allow_null=True)
    exact_rank = serializers.IntegerField(allow_null=True)
    distance = serializers.FloatField(allow_null=True, help_text="Cosine distance.")
    bm25 = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "SearchHit"


class SearchOutput(serializers.Serializer[Any]):
    query = serializers.CharField()
    hits = SearchHitOutput(many=True)
    identifiers = serializers.ListField(
        child=serializers.CharField(), help_text="Exact codes and names found in the question."
    )
    legs = serializers.ListField(
        child=serializers.CharField(), help_text="Ways that were searched."
    )
    note = serializers.CharField(help_text="Not empty when a way could not be searched.")
    embed_ms = serializers.FloatField()
    database_ms = serializers.FloatField()

    class Meta:
        ref_name = "SearchResult"
