"""Writes of assistants: make one, make its next version, publish, rename, archive. A version is never changed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.text import slugify

from apps.collections.models import Collection
from apps.conversations.assistants import (
    MAX_HELPER_DEPTH,
    VersionSpec,
    options_json,
    options_read,
    refused,
    starters_read,
)
from apps.conversations.models import (
    Assistant,
    AssistantCollection,
    AssistantHelper,
    AssistantVersion,
    Mode,
    Output,
)
from apps.conversations.services.checks import (
    advisory_lock,
    collections_checked,
    model_checked,
)
from apps.tools.models import Toolkit
from basics.errors import Conflict, Invalid, Missing
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.errors import ConfigurationError
from toolloop.mcp.schemas import SchemaRefused, depth_check, schema_check
from toolloop.output import output_of

MAX_PROMPT = 20_000
MAX_ASSISTANTS = 200
MAX_HELPERS = 8
MAX_SCHEMA, MAX_SCHEMA_DEPTH, MAX_OPTIONS = 32_000, 24, 16_000
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TAKEN = frozenset({"workspace"})  # assistant/workspace is the workspace itself


def assistant_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    spec: VersionSpec,
    slug: str = "",
    description: str = "",
) -> Assistant:
    """Create an assistant with its first version, which is not published yet.

    Args:
        slug: its name in the API, for good; "" makes one of the name.

    Raises:
        Denied: without the right ``assistant.write``.
        Invalid: a field cannot be used; ``data["fields"]`` says which.
        Conflict: ``assistant_slug_taken``.
    """
    actor.require("assistant.write")
    name, description = _name(name), _description(description)
    given = slug.strip()
    slug = given or slugify(name)[:60].strip("-") or "assistant"
    if len(slug) > 60 or not _SLUG.fullmatch(slug) or slug in _TAKEN:
        raise refused("slug", "Use small letters, digits and hyphens, 60 at most, and not “workspace”.")  # fmt: skip
    values = _Checked(tenant, actor, None, spec)
    with transaction.atomic():
        advisory_lock(f"assistants:{tenant.pk}")
        mine = Assistant.objects.visible_to(actor)
        if mine.count() >= MAX_ASSISTANTS:
            raise refused("name", f"A workspace has at most {MAX_ASSISTANTS} assistants, archived ones among them.")  # fmt: skip
        if not given:
            slug = _free(slug, set(mine.filter(slug__startswith=slug[:50]).values_list("slug", flat=True)))  # fmt: skip
        elif mine.filter(slug=slug).exists():
            raise Conflict("assistant_slug_taken", f"There is an assistant “{slug}” already; archived ones keep their name. Choose another.", data={"fields": {"slug": ["Taken."]}})  # fmt: skip
        assistant: Assistant = Assistant.objects.create(
            tenant=tenant, slug=slug, name=name, description=description, created_by_id=actor.user_id
        )  # fmt: skip
        version = values.write(assistant, 1, "")
        audit_record(tenant=tenant, actor=actor, action="assistant.create", object=assistant, data=_facts(version))  # fmt: skip
    return assistant


def version_create(
    *, tenant: Tenant, actor: Actor, assistant: Assistant, spec: VersionSpec, note: str = ""
) -> AssistantVersion:
    """Make the next version of an assistant; people get it once it is published.

    Args:
        note: what has changed, for whoever reads the list of versions.

    Raises:
        Denied: without the right ``assistant.write``.
        Missing, Invalid: no such assistant; a field cannot be used.
        Conflict: ``assistant_archived``.
    """
    actor.require("assistant.write")
    note = " ".join(note.replace("\x00", "").split())
    if len(note) > 200:
        raise refused("note", "A note has at most 200 characters.")
    values = _Checked(tenant, actor, assistant, spec)
    with transaction.atomic():
        row = _locked(actor, assistant)
        newest = row.versions.aggregate(newest=Max("number"))["newest"] or 0
        version = values.write(row, newest + 1, note)
        audit_record(tenant=tenant, actor=actor, action="assistant.version", object=row, data=_facts(version))  # fmt: skip
    return version


def version_publish(
    *, tenant: Tenant, actor: Actor, assistant: Assistant, number: int
) -> Assistant:
    """Let people talk to this version from their next question on.

    Raises:
        Denied, Missing: without the right ``assistant.write``; no such version.
        Invalid: its helpers would come to ask each other in a circle, or too deep.
        Conflict: ``assistant_archived``.
    """
    actor.require("assistant.write")
    with transaction.atomic():
        # What other assistants publish meanwhile could close a circle of helpers.
        advisory_lock(f"assistant_helpers:{tenant.pk}")
        row = _locked(actor, assistant)
        version = row.versions.filter(number=number).first()
        if version is None:
            raise Missing("version")
        _helpers_hold(tenant, row.pk, list(version.helpers.values_list("assistant_id", flat=True)))
        before = row.published.number if row.published else None
        row.published = version
        row.save(update_fields=["published"])
        audit_record(tenant=tenant, actor=actor, action="assistant.publish", object=row, data={"version": number, "before": before})  # fmt: skip
    return row


def version_unpublish(*, tenant: Tenant, actor: Actor, assistant: Assistant) -> Assistant:
    """Take an assistant away from people without archiving it; harmless when nothing is published."""
    actor.require("assistant.write")
    with transaction.atomic():
        row = _locked(actor, assistant, archived=True)
        if row.published is not None:
            before, row.published = row.published.number, None
            row.save(update_fields=["published"])
            audit_record(tenant=tenant, actor=actor, action="assistant.unpublish", object=row, data={"before": before})  # fmt: skip
    return row


def assistant_rename(
    *, tenant: Tenant, actor: Actor, assistant: Assistant, name: str, description: str
) -> Assistant:
    """Give an assistant another name and description; its name in the API stays."""
    actor.require("assistant.write")
    name, description = _name(name), _description(description)
    with transaction.atomic():
        row = _locked(actor, assistant)
        before = {"name": row.name, "description": row.description}
        row.name, row.description = name, description
        row.save(update_fields=["name", "description"])
        audit_record(tenant=tenant, actor=actor, action="assistant.rename", object=row, data={"before": before, "after": {"name": name, "description": description}})  # fmt: skip
    return row


def assistant_archive(*, tenant: Tenant, actor: Actor, assistant: Assistant) -> Assistant:
    """Put an assistant away: nobody can choose or ask it until it is restored. Harmless when it is archived."""
    actor.require("assistant.write")
    with transaction.atomic():
        row = _locked(actor, assistant, archived=True)
        if row.archived_at is None:
            row.archived_at = timezone.now()
            row.save(update_fields=["archived_at"])
            audit_record(tenant=tenant, actor=actor, action="assistant.archive", object=row)
    return row


def assistant_restore(*, tenant: Tenant, actor: Actor, assistant: Assistant) -> Assistant:
    """Bring an archived assistant back, with the version that was published. Harmless when it is not archived.

    Raises:
        Invalid: its helpers would by now ask each other in a circle, or too deep.
    """
    actor.require("assistant.write")
    with transaction.atomic():
        advisory_lock(f"assistant_helpers:{tenant.pk}")
        row = _locked(actor, assistant, archived=True)
        if row.archived_at is not None:
            if row.published is not None:
                asked = row.published.helpers.values_list("assistant_id", flat=True)
                _helpers_hold(tenant, row.pk, list(asked))
            row.archived_at = None
            row.save(update_fields=["archived_at"])
            audit_record(tenant=tenant, actor=actor, action="assistant.restore", object=row)
    return row


class _Checked:
    """A spec that was held against the workspace, ready to become a version."""

    def __init__(
        self, tenant: Tenant, actor: Actor, assistant: Assistant | None, spec: VersionSpec
    ) -> None:
        self.tenant, self.actor = tenant, actor
        if spec.mode not in Mode.values:
            raise refused("mode", f"Choose a mode: {', '.join(Mode.values)}.")
        if spec.mode == Mode.QUICK and (spec.has_toolkit or spec.helpers):
            raise refused("mode", "The mode “quick” searches by itself: it takes neither a toolkit nor other assistants.")  # fmt: skip
        prompt = spec.prompt.replace("\x00", "").replace("\r\n", "\n").strip()
        if len(prompt) > MAX_PROMPT:
            raise refused("prompt", f"Instructions have at most {MAX_PROMPT:,} characters; these have {len(prompt):,}.")  # fmt: skip
        self.collections: list[Collection] = []
        if spec.collections is not None:
            self.collections = collections_checked(actor, spec.collections)
        self.helpers = _helpers(tenant, actor, assistant, spec)
        name, schema = _output(spec)
        options = options_json(options_read(spec.mode, spec.options))
        _storable("options", options, MAX_OPTIONS)
        self.values: dict[str, Any] = {
            "mode": spec.mode,
            "model": model_checked(tenant, spec.model) if spec.model else "",
            "prompt": prompt,
            "searches_all": spec.collections is None,
            "toolkit": _toolkit(actor, spec),
            "has_toolkit": spec.has_toolkit,
            "output": spec.output,
            "output_name": name,
            "output_schema": schema,
            "options": options,
            "starters": starters_read(spec.starters),
        }

    def write(self, assistant: Assistant, number: int, note: str) -> AssistantVersion:
        """Make the rows; the caller holds the assistant's lock."""
        tenant = self.tenant
        version: AssistantVersion = AssistantVersion.objects.create(
            tenant=tenant, assistant=assistant, number=number, note=note,
            created_by_id=self.actor.user_id, **self.values,
        )  # fmt: skip
        AssistantCollection.objects.bulk_create(
            AssistantCollection(tenant=tenant, version=version, collection=c)
            for c in self.collections
        )
        AssistantHelper.objects.bulk_create(
            AssistantHelper(tenant=tenant, version=version, assistant_id=pk) for pk in self.helpers
        )
        return version


def _toolkit(actor: Actor, spec: VersionSpec) -> Toolkit | None:
    if spec.toolkit is None:
        return None
    if not spec.has_toolkit:
        raise refused("toolkit", "Say that it has a toolkit when you name one.")
    found: Toolkit | None = Toolkit.objects.visible_to(actor).filter(pk=spec.toolkit).first()
    if found is None:
        raise refused("toolkit", "This toolkit does not exist any more. Choose another.")
    return found


def _output(spec: VersionSpec) -> tuple[str, dict[str, Any] | None]:
    """Return name and schema of the output. Raises Invalid."""
    if spec.output not in Output.values:
        raise refused("output", f"Choose a form of the answer: {', '.join(Output.values)}.")
    if spec.output != Output.SCHEMA:
        return "", None
    name, schema = spec.output_name.strip(), spec.output_schema
    if not _SCHEMA_NAME.fullmatch(name):
        raise refused("output_name", "Name the schema with 1 to 64 letters, digits, hyphens or underscores.")  # fmt: skip
    return name, schema_checked(schema)


def schema_checked(schema: Any) -> dict[str, Any]:
    """Return a JSON Schema that answers can be asked for with. Raises Invalid for the field ``output_schema``."""
    if not isinstance(schema, Mapping):
        raise refused("output_schema", "Give the schema as a JSON object.")
    _storable("output_schema", schema, MAX_SCHEMA)
    try:
        depth_check(schema, MAX_SCHEMA_DEPTH)
        schema_check(schema)
        output_of(schema)
    except SchemaRefused as error:
        raise refused("output_schema", f"This cannot be used: {error}.") from error
    except ConfigurationError as error:
        raise refused("output_schema", f"This cannot be used: {error}.") from error
    return dict(schema)


def _storable(name: str, value: Any, limit: int) -> None:
    """Refuse what Postgres' jsonb cannot hold, or what is too large. Raises Invalid."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise refused(name, "This cannot be written as JSON, or is nested too deeply.") from error
    if "\\u0000" in text:
        raise refused(name, "Take out the NUL characters: they cannot be stored.")
    if size > limit:
        raise refused(name, f"This has {size:,} bytes as JSON; at most {limit:,} are allowed.")


def _helpers(
    tenant: Tenant, actor: Actor, assistant: Assistant | None, spec: VersionSpec
) -> list[int]:
    chosen = list(dict.fromkeys(spec.helpers))
    if not chosen:
        return []
    if len(chosen) > MAX_HELPERS:
        raise refused("helpers", f"An assistant asks at most {MAX_HELPERS} others.")
    rows = Assistant.objects.visible_to(actor).filter(pk__in=chosen, archived_at__isnull=True)
    if rows.count() != len(chosen):
        raise refused("helpers", "One of the chosen assistants does not exist or is archived. Choose again.")  # fmt: skip
    _helpers_hold(tenant, None if assistant is None else assistant.pk, chosen)
    return chosen


def _helpers_hold(tenant: Tenant, assistant: int | None, asked: list[int]) -> None:
    """Refuse helpers that would come back to an assistant, or reach deeper than allowed through anybody.

    Args:
        assistant: id of the one whose published version would ask ``asked``; None for one that is new.
    """
    edges = AssistantHelper.objects.filter(
        tenant=tenant, version__in=Assistant.objects.filter(
            tenant=tenant, archived_at__isnull=True, published__isnull=False
        ).values("published"),
    ).values_list("version__assistant_id", "assistant_id")  # fmt: skip
    graph: dict[int, set[int]] = {}
    for asker, helper in edges:
        graph.setdefault(asker, set()).add(helper)
    me = assistant or 0
    graph[me] = set(asked)
    askers: dict[int, set[int]] = {}
    for asker, helpers in graph.items():
        for helper in helpers:
            askers.setdefault(helper, set()).add(asker)
    if _depth(graph, me) + _depth(askers, me) > MAX_HELPER_DEPTH:
        raise _too_deep()


def _depth(graph: Mapping[int, set[int]], start: int) -> int:
    """Return the longest way from a node. Raises Invalid for a circle through it and for a way that is too long."""
    level, depth = {start}, 0
    while level := {one for node in level for one in graph.get(node, ())}:
        depth += 1
        if start in level:
            raise refused("helpers", "These assistants would ask each other in a circle. Choose others.")  # fmt: skip
        if depth > MAX_HELPER_DEPTH:
            raise _too_deep()
    return depth


def _too_deep() -> Invalid:
    return refused("helpers", f"Assistants would ask each other more than {MAX_HELPER_DEPTH} deep. Choose others.")  # fmt: skip


def _locked(actor: Actor, assistant: Assistant, *, archived: bool = False) -> Assistant:
    rows = Assistant.objects.visible_to(actor).select_related("published")
    row: Assistant | None = rows.select_for_update(of=("self",)).filter(pk=assistant.pk).first()
    if row is None:
        raise Missing("assistant")
    if row.archived_at is not None and not archived:
        raise Conflict("assistant_archived", f"“{row.name}” is archived. Restore it first.")
    return row


def _facts(version: AssistantVersion) -> dict[str, Any]:
    return {"version": version.number, "mode": version.mode, "model": version.model}


def _free(slug: str, taken: set[str]) -> str:
    """Return the slug, or the first of slug-2, slug-3 ... that is not taken."""
    if slug not in taken:
        return slug
    return next(
        f"{slug[:55]}-{n}" for n in range(2, MAX_ASSISTANTS + 3) if f"{slug[:55]}-{n}" not in taken
    )


def _name(name: str) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not 1 <= len(name) <= 80:
        raise refused("name", "Give a name of 1 to 80 characters.")
    return name


def _description(text: str) -> str:
    text = " ".join(text.replace("\x00", "").split())
    if len(text) > 300:
        raise refused("description", "A description has at most 300 characters.")
    return text
