"""What the REST API of collections takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.collections.lexical import LANGUAGES
from apps.collections.models import Document, DocumentStatus, LinkOrigin, RerankerChoice, Stage
from apps.collections.services import CHUNK_SIZES, MAX_VERSIONS
from apps.collections.waiting import document_waits


class CollectionInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    description = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    chunk_size = serializers.IntegerField(
        required=False,
        min_value=CHUNK_SIZES[0],
        max_value=CHUNK_SIZES[1],
        help_text="Characters per chunk, at most; 1200 if not given.",
    )
    chunk_overlap = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=CHUNK_SIZES[1] // 2,
        help_text="Less than half of chunk_size; 200 if not given.",
    )

    language = serializers.ChoiceField(
        choices=list(LANGUAGES),
        required=False,
        help_text="How words are reduced to stems; a change reads every document again.",
    )
    links_by = serializers.ChoiceField(
        choices=LinkOrigin.choices, required=False, help_text="Who writes key points and links."
    )
    links_model = serializers.CharField(
        required=False, allow_blank=True, max_length=120, help_text="The model, where links_by is `model`."
    )
    reranker = serializers.ChoiceField(
        choices=RerankerChoice.choices,
        required=False,
        help_text="What reads the best passages of a search once more and orders them anew.",
    )
    reranker_model = serializers.CharField(
        required=False, allow_blank=True, max_length=120, help_text="The model, where reranker is `model`."
    )
    keep_versions = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_VERSIONS,
        help_text="Earlier versions kept of each document; 10 if not given.",
    )


class CollectionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    chunk_size = serializers.IntegerField()
    chunk_overlap = serializers.IntegerField()
    language = serializers.CharField()
    links_by = serializers.CharField()
    links_model = serializers.CharField()
    reranker = serializers.CharField()
    reranker_model = serializers.CharField()
    keep_versions = serializers.IntegerField()
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


class WaitingOutput(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="Why it waits, and about how long.")
    documents = serializers.IntegerField(help_text="Documents of the workspace that come first.")
    seconds = serializers.IntegerField(
        allow_null=True, help_text="Until its turn, by estimate; null while no worker runs."
    )

    class Meta:
        ref_name = "DocumentWaiting"


class DocumentOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    name = serializers.CharField()
    path = serializers.CharField(help_text="Its identity in the collection.")
    version = serializers.IntegerField()
    live_from = serializers.DateTimeField(allow_null=True, help_text="When it began to be searched.")
    live_to = serializers.DateTimeField(
        allow_null=True, help_text="When a newer version took its place; null for the current one."
    )
    source = serializers.CharField()  # type: ignore[assignment]
    is_restricted = serializers.BooleanField()
    document_type = serializers.CharField()
    type_reason = serializers.CharField(help_text="The rule that decided on the type.")
    tags = serializers.ListField(child=serializers.CharField())
    dated = serializers.DateField(allow_null=True)
    attributes = serializers.DictField(help_text="The team's own metadata.")
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
    waiting = serializers.SerializerMethodField(
        help_text="Set while it waits for its turn, at the start and between two slices of work."
    )
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    page_count = serializers.IntegerField()
    skipped_pages = serializers.IntegerField()
    chunk_count = serializers.IntegerField()
    vector_count = serializers.IntegerField()
    lexical_count = serializers.IntegerField()
    identifiers_total = serializers.IntegerField(help_text="Distinct codes and numbers of the original.")
    identifiers_found = serializers.IntegerField(help_text="Of them found in some chunk.")
    timings = serializers.DictField(child=serializers.FloatField(), help_text="Seconds per stage.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Document"

    @extend_schema_field(WaitingOutput(allow_null=True))
    def get_waiting(self, document: Document) -> dict[str, Any] | None:
        """Look once for all documents of an answer."""
        context: Any = self.context
        if "waits" not in context:
            parent: Any = self.parent
            is_list = isinstance(parent, serializers.ListSerializer)
            rows = list(parent.instance) if is_list else [document]
            context["waits"] = document_waits(rows)
        found = context["waits"].get(document.pk)
        return None if found is None else dict(WaitingOutput(found).data)


class DescribeInput(serializers.Serializer[Any]):
    document_type = serializers.CharField(
        required=False, allow_blank=True, max_length=60, help_text="Empty gives it back to the rules."
    )
    tags = serializers.ListField(child=serializers.CharField(max_length=60), required=False, max_length=50)
    dated = serializers.DateField(required=False, allow_null=True)
    attributes = serializers.DictField(required=False, help_text="The team's own metadata, whole.")

    class Meta:
        ref_name = "DocumentDescribe"


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
    agrees = serializers.BooleanField(help_text="Whether the document's counts are what the tables hold.")

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
    path = serializers.CharField(source="document.path")
    qualified_name = serializers.CharField(help_text="Of a function or class.")
    line_start = serializers.IntegerField(allow_null=True)
    line_end = serializers.IntegerField(allow_null=True)
    key_points = serializers.ListField(child=serializers.CharField())
    points_by = serializers.CharField(help_text="`rule` or `model`.")
    is_disabled = serializers.BooleanField(help_text="Left out of every search.")
    is_edited = serializers.BooleanField()

    class Meta:
        ref_name = "Chunk"

    def get_citation_id(self, chunk: Any) -> str:
        return f"c{chunk.pk}"


class ChunkDetailOutput(ChunkOutput):
    previous_id = serializers.IntegerField(allow_null=True, help_text="The chunk before it in the document.")
    next_id = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "ChunkDetail"
