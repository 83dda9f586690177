"""The type of a document that has been read, by its workspace's rules."""

from __future__ import annotations

from apps.collections.ingestion.document_types import (
    document_sample,
    document_type_infer,
    document_type_rules_parse,
)
from apps.collections.ingestion.types import ExtractedDocument
from apps.collections.models import TYPE_BY_HAND, Document, DocumentTypeRules


def type_infer(row: Document, extracted: ExtractedDocument) -> None:
    """Give a document its type by the tenant's rules, unless somebody has set one by hand."""
    rules = DocumentTypeRules.objects.filter(tenant_id=row.tenant_id).first()
    if row.type_reason == TYPE_BY_HAND or rules is None:
        return
    kind, reason = document_type_infer(
        document_type_rules_parse(rules.rules),
        row.name,
        extracted.media_type,
        document_sample(extracted),
    )
    row.document_type, row.type_reason = kind[:60], reason[:255]
