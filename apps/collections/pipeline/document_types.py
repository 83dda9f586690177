"""The type of a document that has been read, by its workspace's rules."""

from __future__ import annotations

from typing import Protocol

from django.db import transaction

from apps.collections.ingestion.document_types import (
    SAMPLE_CHARS,
    SAMPLE_PAGES,
    TypeRules,
    document_sample,
    document_type_infer,
    document_type_rules_parse,
)
from apps.collections.ingestion.types import ExtractedDocument
from apps.collections.models import TYPE_BY_HAND, Document, DocumentStatus, DocumentTypeRules, Page

KIND = "collections.types_infer"


class TypesContext(Protocol):
    """What it needs of ``jobs.context.JobContext``."""

    def check(self) -> None:
        """Raise when the job must stop."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""


def type_infer(row: Document, extracted: ExtractedDocument) -> None:
    """Give a document its type by the tenant's rules, unless somebody has set one by hand."""
    rules = _rules(row.tenant_id)
    if rules is not None:
        _type_set(row, rules, extracted.media_type, document_sample(extracted))


def types_infer(ctx: TypesContext, *, tenant_id: int) -> int:
    """Give the documents that are there the types that the rules of now say; returns how many changed.

    From the stored text of their first pages: nothing is read again. It is safe to run again.
    """
    changed = last = 0
    while (rules := _rules(tenant_id)) is not None:
        rows = Document.objects.current().filter(tenant_id=tenant_id, status=DocumentStatus.READY)
        pk = rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True).first()
        if pk is None:
            break
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            row = Document.objects.select_for_update(no_key=True).filter(pk=pk).first()
            if row is not None:
                before = row.document_type
                pages = Page.objects.filter(document=row, skip_reason="").order_by("number")
                texts = pages.values_list("text", flat=True)[:SAMPLE_PAGES]
                _type_set(row, rules, row.media_type, "".join(texts)[:SAMPLE_CHARS])
                row.save(update_fields=["document_type", "type_reason", "updated_at"])
                changed += row.document_type != before
            ctx.advanced()
        last = pk
    return changed


def _rules(tenant_id: int) -> TypeRules | None:
    rules = DocumentTypeRules.objects.filter(tenant_id=tenant_id).first()
    return None if rules is None else document_type_rules_parse(rules.rules)


def _type_set(row: Document, rules: TypeRules, media_type: str, sample: str) -> None:
    if row.type_reason == TYPE_BY_HAND:
        return
    kind, reason = document_type_infer(rules, row.name, media_type, sample)
    row.document_type, row.type_reason = kind[:60], reason[:255]
