"""What the REST API of collections, of their checks, codes and embedding swaps takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.collections.collection.services import CHUNK_SIZES, MAX_VERSIONS
from apps.collections.ingestion.lexical import LANGUAGES
from apps.collections.models import LinkOrigin, RerankerChoice

SWAP_STEPS = ("switch", "undo", "drop", "cancel", "retry")


class CollectionInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    description = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    chunk_size = serializers.IntegerField(
        required=False,
        min_value=CHUNK_SIZES[0],
        max_value=CHUNK_SIZES[1],
        help_text="Maximum characters per passage; default: 1200.",
    )
    chunk_overlap = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=CHUNK_SIZES[1] // 2,
        help_text="Less than half of chunk_size; default: 200.",
    )

    language = serializers.ChoiceField(
        choices=list(LANGUAGES),
        required=False,
        help_text="Language of the documents, for better search; changing it re-indexes every document.",
    )
    links_by = serializers.ChoiceField(
        choices=LinkOrigin.choices,
        required=False,
        help_text="How key points and links are made: by rules or by a model.",
    )
    links_model = serializers.CharField(
        required=False, allow_blank=True, max_length=120, help_text="The model, if links_by is `model`."
    )
    reranker = serializers.ChoiceField(
        choices=RerankerChoice.choices,
        required=False,
        help_text="Model that reorders the best passages of a search.",
    )
    reranker_model = serializers.CharField(
        required=False, allow_blank=True, max_length=120, help_text="The model, if reranker is `model`."
    )
    keep_versions = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_VERSIONS,
        help_text="Earlier versions kept of each document; default: 10.",
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
    embedding_space = serializers.CharField(source="space", help_text="Embedding model.")
    document_count = serializers.IntegerField()
    processing_count = serializers.IntegerField()
    failed_count = serializers.IntegerField()
    chunk_count = serializers.IntegerField(help_text="Searchable passages.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Collection"


class FindingOutput(serializers.Serializer[Any]):
    code = serializers.CharField()
    subject = serializers.CharField(help_text="What it is about.")
    detail = serializers.CharField(help_text="What is wrong.")
    is_repaired = serializers.BooleanField()
    advice = serializers.CharField(help_text="What to do if it can't be repaired here.")

    class Meta:
        ref_name = "Finding"


class CheckOutput(serializers.Serializer[Any]):
    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    findings = FindingOutput(many=True)

    class Meta:
        ref_name = "IngestionCheck"


class SwapInput(serializers.Serializer[Any]):
    embedder = serializers.CharField(
        max_length=150, help_text="`provider/model`, with `@dimensions` where a model has several."
    )

    class Meta:
        ref_name = "SpaceSwapInput"


class SwapStepInput(serializers.Serializer[Any]):
    step = serializers.ChoiceField(choices=SWAP_STEPS)

    class Meta:
        ref_name = "SpaceSwapStep"


class SwapOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    from_space = serializers.CharField()
    to_space = serializers.CharField()
    status = serializers.CharField()
    done = serializers.IntegerField(help_text="Passages with a vector from the new model.")
    total = serializers.IntegerField()
    comparison = serializers.DictField(help_text="How well the results of both models agree.")
    error_message = serializers.CharField()
    created_at = serializers.DateTimeField()
    switched_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "SpaceSwap"


class CodePatternsInput(serializers.Serializer[Any]):
    patterns = serializers.JSONField(
        allow_null=True,
        help_text='For example `{"version": 1, "kinds": [{"name": "part", "pattern": "PX[- ]?[0-9]{4}", '
        '"keep": "letters_digits"}]}`; null for none.',
    )

    class Meta:
        ref_name = "CodePatternsChange"


class CodePatternsOutput(CodePatternsInput):
    late = serializers.ListField(
        child=serializers.CharField(),
        help_text="Patterns that took too long on some passages, where their codes may be missing.",
    )

    class Meta:
        ref_name = "CodePatterns"
