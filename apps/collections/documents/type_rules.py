"""A tenant's rules for document types, and the type of one document set by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from apps.collections.ingestion.document_types import document_type_rules_parse
from apps.collections.models import TYPE_BY_HAND, Document, DocumentTypeRules
from apps.collections.pipeline.document_types import KIND
from apps.collections.storage.job_locks import document_lock
from basics.errors import Invalid
from basics.texts import gettext as _
from jobs.notify import notify
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_TYPE_CHARS = 60


def type_rules_set(*, tenant: Tenant, actor: Actor, rules: Any) -> DocumentTypeRules | None:
    """Replace the tenant's rules; the documents that are there get their types in the background.

    Args:
        rules: as ``document_type_rules_parse`` reads them; None removes them.

    Raises:
        RulesInvalid: what is wrong with them, and where.
    """
    actor.require("collection.write")
    if rules is not None:
        document_type_rules_parse(rules)
    with transaction.atomic():
        row: DocumentTypeRules | None = None
        if rules is None:
            DocumentTypeRules.objects.filter(tenant=tenant).delete()
        else:
            row, _created = DocumentTypeRules.objects.update_or_create(
                tenant=tenant, defaults={"rules": rules, "updated_by_id": actor.user_id}
            )
        audit_record(
            tenant=tenant, actor=actor, action="document_types.set", object=row, data={"rules": rules}
        )
        if rules is not None:
            job_enqueue(tenant=tenant, actor=actor, kind=KIND, payload={}, dedupe_key="types")
    return row


def type_rules_add(*, tenant: Tenant, actor: Actor, rules: Mapping[str, Any]) -> None:
    """Add the rules of types that the tenant has none for; what it has decided already stays.

    Raises:
        RulesInvalid: there would be too many.
    """
    row = DocumentTypeRules.objects.filter(tenant=tenant).first()
    if row is None:
        type_rules_set(tenant=tenant, actor=actor, rules=dict(rules))
        return
    known = {rule["type"] for rule in row.rules["rules"]}
    if more := [rule for rule in rules["rules"] if rule["type"] not in known]:
        both = {**row.rules, "rules": [*row.rules["rules"], *more]}
        type_rules_set(tenant=tenant, actor=actor, rules=both)


def document_describe(*, tenant: Tenant, actor: Actor, document: Document, **changes: Any) -> Document:
    """Set what people say about a document: ``document_type``, ``tags``, ``dated``, ``attributes``.

    A type set by hand stays when the document is read again; "" gives it back to the rules.

    Raises:
        Invalid: ``document_invalid`` with the fields in ``data``.
        Missing: it was deleted meanwhile.
    """
    actor.require("document.write")
    values = _checked(changes)
    with transaction.atomic():
        row = document_lock(tenant, document)
        for name, value in values.items():
            setattr(row, name, value)
        if "document_type" in values:
            row.type_reason = TYPE_BY_HAND if values["document_type"] else ""
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="document.describe",
            object=row,
            data={name: str(value) for name, value in values.items()},
        )
        notify(tenant.pk, f"collection:{row.collection_id}", row.pk)
    return row


def _checked(changes: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, list[str]] = {}
    known = {"document_type", "tags", "dated", "attributes"}
    for name in set(changes) - known:
        fields[name] = [_("This cannot be changed.")]
    kind = changes.get("document_type", "")
    if not isinstance(kind, str) or len(kind) > MAX_TYPE_CHARS or not kind.isprintable():
        fields["document_type"] = [
            _("Enter text of at most %(max_type_chars)s characters.") % {"max_type_chars": MAX_TYPE_CHARS}
        ]
    tags = changes.get("tags", [])
    if (
        not isinstance(tags, list)
        or len(tags) > 50
        or not all(isinstance(t, str) and 0 < len(t) <= 60 and t.isprintable() for t in tags)
    ):
        fields["tags"] = [_("Use a list of at most 50 texts of 1 to 60 characters.")]
    if (problem := _attributes_problem(changes.get("attributes", {}))) != "":
        fields["attributes"] = [problem]
    if fields:
        raise Invalid(
            "document_invalid", _("Some values are not right; see details."), data={"fields": fields}
        )
    if "tags" in changes:
        changes["tags"] = list(dict.fromkeys(changes["tags"]))
    return changes


def _attributes_problem(attributes: Any) -> str:
    if not isinstance(attributes, dict) or len(attributes) > 100:
        return _("Use an object with at most 100 names.")
    for name, value in attributes.items():
        if not isinstance(name, str) or not 0 < len(name) <= 100 or "." in name or not name.isprintable():
            return _("Names have 1 to 100 characters and no dot.")
        items = value if isinstance(value, list) else [value]
        if len(items) > 100 or not all(_is_scalar(item) for item in items):
            return _("“%(name)s” must be text, a number, true, false, null, or a list of these.") % {
                "name": name
            }
    return ""


def _is_scalar(value: Any) -> bool:
    if isinstance(value, float):
        return value == value and abs(value) != float("inf")
    if isinstance(value, str):
        return len(value) <= 1000 and "\x00" not in value
    return value is None or isinstance(value, (bool, int))
