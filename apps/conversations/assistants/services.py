"""Writes of assistants: make one, make its next version, publish, rename, archive. A version is never changed."""

from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.text import slugify

from apps.conversations.assistants.options import VersionSpec, refused
from apps.conversations.assistants.spec import CheckedSpec, helpers_hold
from apps.conversations.models import Assistant, AssistantVersion
from apps.conversations.transcript.locks import advisory_lock
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

MAX_ASSISTANTS = 200
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TAKEN = frozenset({"workspace"})  # assistant/workspace is the workspace itself


def assistant_create(
    *, tenant: Tenant, actor: Actor, name: str, spec: VersionSpec, slug: str = "", description: str = ""
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
        raise refused(
            "slug", _("Use at most 60 lower-case letters, digits and hyphens, and not “workspace”.")
        )
    values = CheckedSpec(tenant, actor, None, spec)
    with transaction.atomic():
        advisory_lock(f"assistants:{tenant.pk}")
        mine = Assistant.objects.visible_to(actor)
        if mine.count() >= MAX_ASSISTANTS:
            raise refused(
                "name",
                _("A workspace can have at most %(most)s assistants, including archived ones.")
                % {"most": MAX_ASSISTANTS},
            )
        if not given:
            slug = _free(slug, set(mine.filter(slug__startswith=slug[:50]).values_list("slug", flat=True)))
        elif mine.filter(slug=slug).exists():
            raise Conflict(
                "assistant_slug_taken",
                _(
                    "The assistant “%(slug)s” already exists; archived ones keep their name. Choose another name."
                )
                % {"slug": slug},
                data={"fields": {"slug": [_("Taken.")]}},
            )
        assistant: Assistant = Assistant.objects.create(
            tenant=tenant, slug=slug, name=name, description=description, created_by_id=actor.user_id
        )
        version = values.write(assistant, 1, "")
        audit_record(
            tenant=tenant, actor=actor, action="assistant.create", object=assistant, data=_facts(version)
        )
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
        raise refused("note", _("A note can have at most 200 characters."))
    values = CheckedSpec(tenant, actor, assistant, spec)
    with transaction.atomic():
        row = _locked(actor, assistant)
        newest = row.versions.aggregate(newest=Max("number"))["newest"] or 0
        version = values.write(row, newest + 1, note)
        audit_record(tenant=tenant, actor=actor, action="assistant.version", object=row, data=_facts(version))
    return version


def version_publish(*, tenant: Tenant, actor: Actor, assistant: Assistant, number: int) -> Assistant:
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
        helpers_hold(tenant, row.pk, list(version.helpers.values_list("assistant_id", flat=True)))
        before = row.published.number if row.published else None
        row.published = version
        row.save(update_fields=["published"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="assistant.publish",
            object=row,
            data={"version": number, "before": before},
        )
    return row


def version_unpublish(*, tenant: Tenant, actor: Actor, assistant: Assistant) -> Assistant:
    """Take an assistant away from people without archiving it; harmless when nothing is published."""
    actor.require("assistant.write")
    with transaction.atomic():
        row = _locked(actor, assistant, archived=True)
        if row.published is not None:
            before, row.published = row.published.number, None
            row.save(update_fields=["published"])
            audit_record(
                tenant=tenant, actor=actor, action="assistant.unpublish", object=row, data={"before": before}
            )
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
        audit_record(
            tenant=tenant,
            actor=actor,
            action="assistant.rename",
            object=row,
            data={"before": before, "after": {"name": name, "description": description}},
        )
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
                helpers_hold(tenant, row.pk, list(asked))
            row.archived_at = None
            row.save(update_fields=["archived_at"])
            audit_record(tenant=tenant, actor=actor, action="assistant.restore", object=row)
    return row


def _locked(actor: Actor, assistant: Assistant, *, archived: bool = False) -> Assistant:
    rows = Assistant.objects.visible_to(actor).select_related("published")
    row: Assistant | None = rows.select_for_update(of=("self",)).filter(pk=assistant.pk).first()
    if row is None:
        raise Missing("assistant")
    if row.archived_at is not None and not archived:
        raise Conflict(
            "assistant_archived", _("“%(name)s” is archived. Restore it first.") % {"name": row.name}
        )
    return row


def _facts(version: AssistantVersion) -> dict[str, Any]:
    return {"version": version.number, "mode": version.mode, "model": version.model}


def _free(slug: str, taken: set[str]) -> str:
    """Return the slug, or the first of slug-2, slug-3 ... that is not taken."""
    if slug not in taken:
        return slug
    return next(f"{slug[:55]}-{n}" for n in range(2, MAX_ASSISTANTS + 3) if f"{slug[:55]}-{n}" not in taken)


def _name(name: str) -> str:
    name = " ".join(name.replace("\x00", "").split())
    if not 1 <= len(name) <= 80:
        raise refused("name", _("Enter a name of 1 to 80 characters."))
    return name


def _description(text: str) -> str:
    text = " ".join(text.replace("\x00", "").split())
    if len(text) > 300:
        raise refused("description", _("A description can have at most 300 characters."))
    return text
