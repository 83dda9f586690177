"""A tenant's patterns of codes: which part numbers, dockets and the like its documents have."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.collections.index.codes import codes_reindex_enqueue
from apps.collections.ingestion.code_kinds import code_kinds_parse
from apps.collections.ingestion.codes import EVERYWHERE
from apps.collections.models import CodePatterns
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record


def code_patterns_set(*, tenant: Tenant, actor: Actor, patterns: Any) -> CodePatterns | None:
    """Replace the tenant's patterns; the passages that are there are indexed by them in the background.

    Args:
        patterns: as ``code_kinds_parse`` reads them; None removes them.

    Raises:
        CodesInvalid: what is wrong with them, and where.
    """
    actor.require("collection.write")
    kinds = EVERYWHERE if patterns is None else code_kinds_parse(patterns)
    with transaction.atomic():
        row: CodePatterns | None = None
        if patterns is None:
            CodePatterns.objects.filter(tenant=tenant).delete()
        else:
            row, _ = CodePatterns.objects.update_or_create(
                tenant=tenant,
                defaults={
                    "patterns": patterns,
                    "digest": kinds.digest,
                    "late": [],
                    "updated_by_id": actor.user_id,
                },
            )
        audit_record(
            tenant=tenant, actor=actor, action="code_patterns.set", object=row, data={"patterns": patterns}
        )
        codes_reindex_enqueue(tenant=tenant, actor=actor)
    return row
