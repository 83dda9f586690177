"""The worked examples: assistants that any workspace can add with what they need."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.db import transaction

from apps.collections.documents.type_rules import type_rules_add
from apps.collections.ingestion.document_types import trade_compliance_data
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_publish
from apps.conversations.models import Assistant
from apps.conversations.transcript.locks import advisory_lock
from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create
from apps.tools.toolkits.services import toolkit_set
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant

FOLDER = Path(__file__).resolve().parents[1] / "examples"
_TYPES: Mapping[str, Callable[[], dict[str, Any]]] = {"trade_compliance": trade_compliance_data}
EXAMPLES = ("trade_compliance",)


@cache
def example_read(name: str) -> dict[str, Any]:
    """Return an example as its file has it. Raises Missing."""
    if name not in EXAMPLES:
        raise Missing("example")
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def example_install(*, tenant: Tenant, actor: Actor, name: str) -> Assistant:
    """Add an example's assistant, published, with its toolkit, the grants of its tools and the types of its documents.

    Documents that are there get their types in the background. Rules of types that the workspace has already stay.

    Raises:
        Denied: without the rights ``assistant.write``, ``tool.manage`` and ``collection.write``.
        Missing: no such example.
        Conflict: ``example_installed``, the workspace has it already, perhaps archived.
    """
    actor.require("assistant.write")
    actor.require("tool.manage")
    example = example_read(name)
    with transaction.atomic():
        advisory_lock(f"example_install:{tenant.pk}")
        if Assistant.objects.visible_to(actor).filter(slug=example["slug"]).exists():
            raise Conflict(
                "example_installed",
                _("The assistant “%(slug)s” already exists; it may be archived.") % {"slug": example["slug"]},
            )
        type_rules_add(tenant=tenant, actor=actor, rules=_TYPES[example["document_types"]]())
        kit = toolkit_set(tenant=tenant, actor=actor, **example["toolkit"])
        for group in example["grants"]:
            # Whoever has ruled about the group already, by a denial too, has decided.
            if not ToolGrant.objects.visible_to(actor).filter(target_kind="group", target=group).exists():
                grant_create(
                    tenant=tenant,
                    actor=actor,
                    effect="allow",
                    target_kind="group",
                    target=group,
                    calls="read_only",
                    note=f"Added with the example “{example['name']}”.",
                )
        spec = {**example["spec"], "prompt": "\n".join(example["spec"]["prompt"])}
        assistant = assistant_create(
            tenant=tenant,
            actor=actor,
            name=example["name"],
            slug=example["slug"],
            description=example["description"],
            spec=VersionSpec(**spec, toolkit=kit.pk, has_toolkit=True),
        )
        return version_publish(tenant=tenant, actor=actor, assistant=assistant, number=1)
