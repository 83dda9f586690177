"""Sources of a workspace's own tools: made, changed, read again, removed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from apps.tools.connectors.base import kind_get
from apps.tools.connectors.http import origin
from apps.tools.models import ToolSource
from apps.tools.toolset.bundles import bundle_list
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from jobs.models import Job
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from toolloop.storable import json_storable

JOB_KIND = "tools.source_refresh"
MAX_SOURCES = 100
MAX_DOCUMENT = 10_000_000
"""Characters of an OpenAPI document."""
MAX_JSON = 50_000
"""Characters of settings, and of a contract test's arguments."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LINES = {"title": 120, "url": 500, "document_url": 500}
_READ_AGAIN = frozenset({"url", "document_url", "document", "settings"})
_FIELDS = frozenset({*_READ_AGAIN, "title", "allowed_hosts", "is_enabled"})


def source_state(row: ToolSource) -> dict[str, Any]:
    """Return what a source is, as ``source_create`` takes it; its document is not kept, it is read again."""
    fields = ("kind", "name", "title", "url", "document_url", "settings", "allowed_hosts", "is_enabled")
    return {field: getattr(row, field) for field in fields}


@transaction.atomic
def source_create(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    name: str,
    title: str = "",
    url: str = "",
    document_url: str = "",
    document: str = "",
    settings: Mapping[str, Any] | None = None,
    allowed_hosts: Sequence[str] = (),
    is_enabled: bool = True,
    accept_all: bool = False,
) -> ToolSource:
    """Add a source and have it read; its tools wait to be accepted.

    Args:
        kind: openapi, mcp or plugin.
        name: small letters, digits and hyphens, at most 24: the group its tools are granted by and what their names
            begin with. It stays.
        url, document_url, document, settings: see ``ToolSource``; which are needed depends on the kind.
        allowed_hosts: further hosts that calls may go to.
        accept_all: take all tools that it is found to have at once.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: a field cannot be used; ``data["fields"]`` says which.
        SourceError: this installation has no such kind.
    """
    actor.require("tool.manage")
    if kind not in ToolSource.Kind.values:
        raise invalid("kind", _("Use one of %(known)s.") % {"known": ", ".join(ToolSource.Kind.values)})
    row = ToolSource(tenant=tenant, kind=kind, name=_name_checked(name), is_enabled=is_enabled)
    _fill(
        row,
        {
            "title": title,
            "url": url,
            "document_url": document_url,
            "document": document,
            "settings": {} if settings is None else settings,
            "allowed_hosts": allowed_hosts,
        },
    )
    kind_get(kind).check(row)
    with tenant_scope(tenant.pk):
        own = ToolSource.objects.filter(tenant=tenant)
        if own.count() >= MAX_SOURCES:
            raise invalid(
                "name",
                _("This workspace already has %(most)s sources. Remove one first.") % {"most": MAX_SOURCES},
            )
        if own.filter(name=row.name).exists():
            raise invalid(
                "name",
                _("A source named “%(name)s” already exists. Choose another name.") % {"name": row.name},
            )
        row.save()
        row.refresh_from_db()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_source.create",
            object=row,
            object_name=row.name,
            data={"before": None, "after": source_state(row)},
        )
        _enqueue(tenant, actor, row, accept_all=accept_all)
    return row


@transaction.atomic
def source_update(*, tenant: Tenant, actor: Actor, pk: int, **changes: Any) -> ToolSource:
    """Change a source; it is read again when what is read has changed.

    Args:
        changes: ``title``, ``url``, ``document_url``, ``document``, ``settings``, ``allowed_hosts``, ``is_enabled``; those
            not given stay as they are.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
        Invalid: a field cannot be used, or another host would get credentials that were entered for this one.
    """
    actor.require("tool.manage")
    unknown = sorted(set(changes) - _FIELDS)
    if unknown:
        raise TypeError(f"source_update() takes no {unknown[0]!r}")
    with tenant_scope(tenant.pk):
        row = source_locked(tenant, pk)
        before = {field: getattr(row, field) for field in changes}
        kept = source_state(row)
        had = origin(row.url)
        _fill(row, changes)
        kind_get(row.kind).check(row)
        if had and origin(row.url) != had and row.credentials.exists():
            raise invalid(
                "url",
                _(
                    "The stored credentials belong to the current address. Remove them first, change the address, then enter them again."
                ),
            )
        changed = sorted(f for f in changes if getattr(row, f) != before[f])
        if not changed:
            return row
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_source.update",
            object=row,
            object_name=row.name,
            data={"fields": changed, "before": kept, "after": source_state(row)},
        )
        if _READ_AGAIN & set(changed):
            _enqueue(tenant, actor, row)
    return row


@transaction.atomic
def source_delete(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Remove a source with its tools, their versions and tests, and its credentials.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = source_locked(tenant, pk)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_source.delete",
            object=row,
            object_name=row.name,
            data={"versions": row.versions.count(), "before": source_state(row), "after": None},
        )
        row.delete()


@transaction.atomic
def source_refresh(*, tenant: Tenant, actor: Actor, pk: int, accept_all: bool = False) -> Job:
    """Have a source read again, in a job.

    Args:
        accept_all: take tools that it did not have before at once; changed ones wait in any case.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        row = source_locked(tenant, pk)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_source.refresh",
            object=row,
            object_name=row.name,
            data={"accept_all": accept_all},
        )
        return _enqueue(tenant, actor, row, accept_all=accept_all)


def source_locked(tenant: Tenant, pk: int) -> ToolSource:
    """Return a source of the tenant, locked to the end of the transaction. Raises Missing."""
    rows = ToolSource.objects.select_for_update(of=("self",))
    row: ToolSource | None = rows.filter(tenant=tenant, pk=pk).first()
    if row is None:
        raise Missing("source")
    return row


def invalid(field: str, message: str) -> Invalid:
    """Return the refusal of one field."""
    return Invalid("invalid", message, data={"fields": {field: [message]}})


def json_checked(field: str, value: Any) -> dict[str, Any]:
    """Return an object as it can be stored. Raises Invalid for anything else, and for one that is too large."""
    if not isinstance(value, Mapping):
        raise invalid(field, _("Give an object."))
    try:
        size, stored = len(json.dumps(value)), json_storable(dict(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid(field, _("This cannot be written as JSON, or is nested too deeply.")) from error
    if size > MAX_JSON:
        raise invalid(field, _("Use at most %(most)s characters.") % {"most": number_told(MAX_JSON)})
    return dict(stored)


def _enqueue(tenant: Tenant, actor: Actor, row: ToolSource, *, accept_all: bool = False) -> Job:
    return job_enqueue(
        tenant=tenant,
        actor=actor,
        kind=JOB_KIND,
        dedupe_key=f"source:{row.pk}",
        payload={"source_id": row.pk, "accept_all": int(accept_all)},
    )


def _name_checked(name: str) -> str:
    name = name.strip()
    if len(name) > 24 or not _NAME.fullmatch(name):
        raise invalid(
            "name",
            _("Use at most 24 lower-case letters, digits and single hyphens, starting with a letter."),
        )
    for bundle in bundle_list():
        if name == bundle.name or any(t.name.startswith(f"{name}_") for t in bundle.tools()):
            raise invalid(
                "name",
                _("“%(name)s” is used by this server's own tools. Choose another name.") % {"name": name},
            )
    return name


def _fill(row: ToolSource, values: Mapping[str, Any]) -> None:
    for field, value in values.items():
        limit = _LINES.get(field)
        if limit is not None:
            value = value.strip()
            if len(value) > limit or not value.isprintable():
                raise invalid(field, _("Enter one line of at most %(most)s characters.") % {"most": limit})
        elif field == "document" and (len(value) > MAX_DOCUMENT or "\0" in value):
            raise invalid(
                field,
                _("A document has at most %(most)s characters, and no NUL among them.")
                % {"most": number_told(MAX_DOCUMENT)},
            )
        elif field == "settings":
            value = json_checked(field, value)
        elif field == "allowed_hosts":
            value = _hosts_checked(value)
        setattr(row, field, value)


def _hosts_checked(hosts: Sequence[str]) -> list[str]:
    found = [host.strip().lower().rstrip(".") for host in hosts]
    odd = next((host for host in found if not _HOST.fullmatch(host)), None)
    if odd is not None:
        raise invalid(
            "allowed_hosts",
            _("“%(host)s” isn't a host name. Write it like api.example.org, without https:// or port.")
            % {"host": odd[:80]},
        )
    if len(found) > 50:
        raise invalid("allowed_hosts", _("Enter at most 50 hosts."))
    return list(dict.fromkeys(found))
