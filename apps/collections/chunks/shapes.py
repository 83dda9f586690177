"""What the REST API of chunks takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.collections.chunks.services import MAX_CHUNK_CHARS


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
    qualified_name = serializers.CharField(help_text="Only for functions and classes.")
    line_start = serializers.IntegerField(allow_null=True)
    line_end = serializers.IntegerField(allow_null=True)
    key_points = serializers.ListField(child=serializers.CharField())
    points_by = serializers.CharField(help_text="`rule` or `model`.")
    is_disabled = serializers.BooleanField(help_text="Excluded from every search.")
    is_edited = serializers.BooleanField()

    class Meta:
        ref_name = "Chunk"

    def get_citation_id(self, chunk: Any) -> str:
        return f"c{chunk.pk}"


class ChunkDetailOutput(ChunkOutput):
    previous_id = serializers.IntegerField(allow_null=True, help_text="The previous passage in the document.")
    next_id = serializers.IntegerField(allow_null=True)

    class Meta:
        ref_name = "ChunkDetail"


class ChunkInput(serializers.Serializer[Any]):
    text = serializers.CharField(
        required=False, max_length=MAX_CHUNK_CHARS, trim_whitespace=False, help_text="The new text."
    )
    is_disabled = serializers.BooleanField(required=False, help_text="True excludes it from every search.")
    note = serializers.CharField(
        required=False, allow_blank=True, max_length=255, help_text="Reason for the change."
    )

    class Meta:
        ref_name = "ChunkChange"

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("text" in attrs) == ("is_disabled" in attrs):
            raise serializers.ValidationError("Send either text or is_disabled, not both.")
        return attrs


class ChunkBriefOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    document_id = serializers.IntegerField()
    index = serializers.IntegerField()
    kind = serializers.CharField()
    qualified_name = serializers.CharField()
    page_start = serializers.IntegerField(allow_null=True)
    headings = serializers.ListField(child=serializers.CharField())
    text = serializers.CharField()

    class Meta:
        ref_name = "ChunkBrief"


class LinkOutput(serializers.Serializer[Any]):
    chunk = ChunkBriefOutput(help_text="The passage at the other end.")
    direction = serializers.CharField()
    relation = serializers.CharField()
    common_topic = serializers.CharField()
    made_by = serializers.CharField(help_text="`rule` or `model`.")
    weight = serializers.FloatField(help_text="0 to 1, stronger first.")

    class Meta:
        ref_name = "ChunkLink"


class ChainStepOutput(serializers.Serializer[Any]):
    chunk = ChunkBriefOutput()
    depth = serializers.IntegerField()
    relation = serializers.CharField(help_text="The link that led to it.")

    class Meta:
        ref_name = "ChainStep"


class NeighboursOutput(serializers.Serializer[Any]):
    before = ChunkBriefOutput(many=True)
    chunk = ChunkBriefOutput()
    after = ChunkBriefOutput(many=True)

    class Meta:
        ref_name = "ChunkNeighbours"


class RevisionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    chunk_id = serializers.IntegerField()
    before = serializers.DictField(help_text="The previous `text` and `is_disabled`.")
    after = serializers.DictField()
    user = serializers.CharField(source="user.email", default="", help_text="Who made the change.")
    note = serializers.CharField()
    at = serializers.DateTimeField()

    class Meta:
        ref_name = "ChunkRevision"


class ReaderOutput(serializers.Serializer[Any]):
    cursor = serializers.CharField(help_text="Send it with the next step.")
    chunk = ChunkOutput(allow_null=True, help_text="Null at the end in that direction.")
    place = serializers.IntegerField(help_text="Number of passages before it.")
    total = serializers.IntegerField()

    class Meta:
        ref_name = "Reader"


class CodeLinkOutput(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="`defines`, `imports`, `calls` or `inherits`.")
    source = serializers.CharField()  # type: ignore[assignment]
    target = serializers.CharField()
    chunk_id = serializers.IntegerField()
    target_chunk_id = serializers.IntegerField(allow_null=True)
    path = serializers.CharField(help_text="In the source.")
    line = serializers.IntegerField()
    is_ambiguous = serializers.BooleanField(help_text="Matched by name only, or more than one match.")

    class Meta:
        ref_name = "CodeLink"


class CodeEdgesOutput(serializers.Serializer[Any]):
    outgoing = CodeLinkOutput(many=True)
    incoming = CodeLinkOutput(many=True)

    class Meta:
        ref_name = "CodeEdges"


class SizesOutput(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    min = serializers.IntegerField()
    mean = serializers.FloatField()
    max = serializers.IntegerField()
    percentiles = serializers.DictField(child=serializers.FloatField())

    class Meta:
        ref_name = "ChunkSizes"


class LinkCountOutput(serializers.Serializer[Any]):
    relation = serializers.CharField()
    made_by = serializers.CharField()
    count = serializers.IntegerField()

    class Meta:
        ref_name = "LinkCount"


class CoverageOutput(serializers.Serializer[Any]):
    text = serializers.IntegerField(help_text="Characters in the documents.")
    skipped = serializers.IntegerField(help_text="Characters on pages left out on purpose.")
    covered = serializers.IntegerField(help_text="Characters in at least one passage.")
    share = serializers.FloatField(allow_null=True)

    class Meta:
        ref_name = "Coverage"


class StatisticsOutput(serializers.Serializer[Any]):
    documents = serializers.IntegerField()
    chunks = serializers.IntegerField()
    kinds = serializers.DictField(child=serializers.IntegerField())
    sizes = SizesOutput()
    disabled = serializers.IntegerField()
    edited = serializers.IntegerField()
    with_points = serializers.DictField(child=serializers.IntegerField())
    links = LinkCountOutput(many=True)
    coverage = CoverageOutput()

    class Meta:
        ref_name = "ChunkStatistics"
