"""What the REST API of documents, of their versions, access and types takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.collections.display.waiting import document_waits
from apps.collections.models import Document, DocumentStatus, Stage
from tenancy.models import Role


class MoveInput(serializers.Serializer[Any]):
    path = serializers.CharField(max_length=1000, help_text="New path in the collection, as folder/name.")

    class Meta:
        ref_name = "DocumentMove"


class AccessInput(serializers.Serializer[Any]):
    is_restricted = serializers.BooleanField(help_text="False opens it to the workspace.")
    roles = serializers.ListField(
        child=serializers.ChoiceField(choices=Role.choices),
        required=False,
        max_length=10,
        help_text="Exactly these: owners aren't included automatically.",
    )
    users = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        required=False,
        max_length=1000,
        help_text="Ids of the members.",
    )

    class Meta:
        ref_name = "DocumentAccessInput"


class AccessOutput(serializers.Serializer[Any]):
    is_restricted = serializers.BooleanField()
    roles = serializers.ListField(child=serializers.CharField())
    users = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        ref_name = "DocumentAccess"


class CountOutput(serializers.Serializer[Any]):
    count = serializers.IntegerField(help_text="Documents that were queued.")

    class Meta:
        ref_name = "Count"


class TypeRulesShape(serializers.Serializer[Any]):
    rules = serializers.JSONField(
        allow_null=True, help_text="Signals by type, as data; null for none. See document-types/example."
    )

    class Meta:
        ref_name = "DocumentTypeRules"


class UploadInput(serializers.Serializer[Any]):
    file = serializers.FileField(help_text="The file; its name is kept.")

    class Meta:
        ref_name = "Upload"


class WaitingOutput(serializers.Serializer[Any]):
    text = serializers.CharField(help_text="Why it waits, and about how long.")
    documents = serializers.IntegerField(help_text="Documents of the workspace ahead of it.")
    seconds = serializers.IntegerField(
        allow_null=True, help_text="Estimated time until its turn; null while no worker is running."
    )

    class Meta:
        ref_name = "DocumentWaiting"


class DocumentOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    collection_id = serializers.IntegerField()
    name = serializers.CharField()
    path = serializers.CharField(help_text="Its path in the collection.")
    version = serializers.IntegerField()
    live_from = serializers.DateTimeField(allow_null=True, help_text="When it became searchable.")
    live_to = serializers.DateTimeField(
        allow_null=True, help_text="When a newer version replaced it; null for the current one."
    )
    source = serializers.CharField()  # type: ignore[assignment]
    is_restricted = serializers.BooleanField()
    document_type = serializers.CharField()
    type_reason = serializers.CharField(help_text="The rule that decided the type.")
    tags = serializers.ListField(child=serializers.CharField())
    dated = serializers.DateField(allow_null=True)
    attributes = serializers.DictField(help_text="The team's own metadata.")
    title = serializers.CharField()
    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    sha256 = serializers.CharField()
    status = serializers.ChoiceField(choices=DocumentStatus.choices)
    stage = serializers.ChoiceField(
        choices=Stage.choices, help_text="The current stage, or the one in which it failed."
    )
    progress_current = serializers.IntegerField()
    progress_total = serializers.IntegerField()
    waiting = serializers.SerializerMethodField(
        help_text="Set while it waits for its turn, before and between slices of work."
    )
    error_code = serializers.CharField()
    error_message = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    page_count = serializers.IntegerField()
    skipped_pages = serializers.IntegerField()
    chunk_count = serializers.IntegerField()
    vector_count = serializers.IntegerField()
    lexical_count = serializers.IntegerField()
    identifiers_total = serializers.IntegerField(help_text="Distinct codes and numbers in the original.")
    identifiers_found = serializers.IntegerField(help_text="Of these, found in its passages.")
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
        required=False, allow_blank=True, max_length=60, help_text="Empty: the rules decide again."
    )
    tags = serializers.ListField(child=serializers.CharField(max_length=60), required=False, max_length=50)
    dated = serializers.DateField(required=False, allow_null=True)
    attributes = serializers.DictField(
        required=False, help_text="The team's own metadata; replaces all of it."
    )

    class Meta:
        ref_name = "DocumentDescribe"


class UploadOutput(DocumentOutput):
    created = serializers.BooleanField(
        help_text="False if the collection already had a document with the same bytes: that one is returned."
    )

    class Meta:
        ref_name = "UploadedDocument"


class LedgerOutput(serializers.Serializer[Any]):
    pages = serializers.IntegerField(source="found.pages")
    skipped = serializers.IntegerField(source="found.skipped")
    chunks = serializers.IntegerField(source="found.chunks")
    vectors = serializers.IntegerField(source="found.vectors")
    lexical = serializers.IntegerField(source="found.lexical")
    agrees = serializers.BooleanField(help_text="Whether the document's counts match what is stored.")

    class Meta:
        ref_name = "Ledger"


class DocumentDetailOutput(DocumentOutput):
    ledger = LedgerOutput()

    class Meta:
        ref_name = "DocumentDetail"
