"""Erase a document or a conversation, with what was made of it everywhere in its workspace."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from erasure.kinds import ContentKind, Erased, content_hooks
from erasure.models import Erasure
from erasure.reports import REMOVED, REPLACED, Report
from erasure.trail import trail_forget
from tenancy.database.base import as_login_role
from tenancy.models import TenantModel
from tenancy.scope import tenant_scope

_PASSES = 3
"""How often what was made of it is looked for, which others may write until the thing itself is gone."""


def content_subject(kind: ContentKind, row: Erasure) -> TenantModel | None:
    """Return the document or conversation that an erasure is about, None once it is gone."""
    if row.workspace is None:
        return None
    with tenant_scope(row.workspace):
        found: TenantModel | None = (
            kind.model._base_manager.select_related("tenant")
            .filter(tenant_id=row.workspace, pk=row.subject)
            .first()
        )
    return found


def content_erase(kind: ContentKind, subject: TenantModel, report: Report) -> None:
    """Erase a document or conversation.

    Names in the audit trail go first and once more at the end, so that a try that is interrupted leaves none behind.
    """
    pseudonym = f"{kind.kind.value}-{subject.pk}"
    tenant = subject.tenant
    with tenant_scope(tenant.pk):
        with transaction.atomic():
            erased = kind.erased(subject)
            events = trail_forget(erased, pseudonym)
        with transaction.atomic():
            erased = kind.erased(subject)
            _made_erase(erased, report)
            report.add("Administration log", REMOVED, _admin_log(erased))
            kind.remove(subject, erased, report)
        for _ in range(_PASSES):
            with transaction.atomic():
                if not _made_erase(erased, report):
                    break
        with transaction.atomic():
            events += trail_forget(erased, pseudonym)
    report.add("tenancy.AuditEvent", REPLACED, events)


def _made_erase(erased: Erased, report: Report) -> bool:
    """Remove what other rooms made of it; returns whether there was anything."""
    before = len(report.lines)
    for remove in reversed([hook(erased) for hook in content_hooks()]):
        remove(report)
    return len(report.lines) > before


def _admin_log(erased: Erased) -> int:
    gone = 0
    types = {f"{t.app_label}.{t.model}": t.pk for t in ContentType.objects.all()}
    with as_login_role():
        for label, pks in erased.events.items():
            if label in types:
                rows = LogEntry.objects.filter(
                    content_type_id=types[label], object_id__in=[str(p) for p in pks]
                )
                gone += rows.delete()[0]
    return gone
