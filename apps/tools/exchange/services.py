"""Export and import of what a workspace states about tools. An import is tried first: the same work, then undone.

Each row goes through the service that a person's change would go through, in a savepoint of one transaction: it is
validated and audited as such, and what a service refuses, the import refuses.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from django.db import transaction

from apps.collections.models import Collection
from apps.tools.catalog.services import entry_set, entry_state
from apps.tools.exchange.files import FIELDS, FileRow, rows_read
from apps.tools.exchange.history import FieldChange, fields_changed
from apps.tools.models import ToolEntry, ToolGrant, Toolkit
from apps.tools.permissions.services import grant_create, grant_kept
from apps.tools.toolkits.services import toolkit_set, toolkit_state
from basics.errors import DomainError, Invalid
from tenancy.actors import Actor
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

Status = Literal["new", "changed", "unchanged", "refused"]
# What a rule is when its row does not say.
_GRANT: Mapping[str, Any] = {
    "target": "",
    "toolkit": None,
    "calls": "any",
    "subject_kind": "everyone",
    "subject": "",
    "collection": None,
    "arguments": [],
    "expires_at": None,
    "note": "",
    "approver_kind": "self",
    "approver": "",
    "approval_hours": None,
    "needs_reason": False,
}


@dataclass(frozen=True, slots=True)
class RowImport:
    """What becomes of one row of a file."""

    row: FileRow
    name: str
    status: Status
    message: str = ""
    fields: Sequence[FieldChange] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import does, or would do.

    Attributes:
        is_done: it was done; otherwise everything is as before.
        digest: names what it does; the same again as long as nothing changes meanwhile.
    """

    outcomes: Sequence[RowImport]
    is_done: bool
    digest: str

    @property
    def counts(self) -> Mapping[str, int]:
        """Return the number of rows by status."""
        return Counter(outcome.status for outcome in self.outcomes)

    @property
    def does_something(self) -> bool:
        """Tell whether a row is new or changed."""
        return bool(self.counts["new"] or self.counts["changed"])


def catalog_export(
    *, tenant: Tenant, actor: Actor, kinds: Sequence[str] = tuple(FIELDS)
) -> dict[str, list[dict[str, Any]]]:
    """Return what the workspace states about tools, by kind, as files have it; the audit trail says who took it.

    Args:
        kinds: some of entries, toolkits, grants.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: there is no such kind.
    """
    actor.require("tool.manage")
    if unknown := sorted(set(kinds) - set(FIELDS)):
        raise Invalid("invalid", f"There is no kind “{unknown[0]}”: use {', '.join(FIELDS)}.")
    with transaction.atomic(), tenant_scope(tenant.pk):
        found: dict[str, list[dict[str, Any]]] = {}
        if "entries" in kinds:
            rows = ToolEntry.objects.filter(tenant=tenant).order_by("name")
            found["entries"] = [entry_state(row) for row in rows]
        if "toolkits" in kinds:
            kits = Toolkit.objects.filter(tenant=tenant).prefetch_related("members")
            found["toolkits"] = [toolkit_state(kit) for kit in kits.order_by("name")]
        if "grants" in kinds:
            names = _Names(tenant, actor)
            grants = ToolGrant.objects.filter(tenant=tenant).order_by("pk")
            found["grants"] = [names.portable(grant_kept(row)) for row in grants]
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_catalog.export",
            data={kind: len(rows) for kind, rows in found.items()},
        )
    return found


def catalog_import(
    *, tenant: Tenant, actor: Actor, content: bytes, expected: str = "", file_name: str = ""
) -> Imported:
    """Import a file, or tell what that would do.

    Rows are stated over what is there: nothing is removed. A row that is refused leaves the others as they are.

    Args:
        content: the file, see ``apps.tools.exchange.files``.
        expected: the digest that a trial gave; without one it is a trial. Where the import would do something else by
            now, nothing is done.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: the file cannot be read.
    """
    actor.require("tool.manage")
    rows = rows_read(content)
    with tenant_scope(tenant.pk), transaction.atomic():
        work = _Import(tenant, actor)
        outcomes = [work.outcome(row) for row in rows]
        digest = _digest(tenant, outcomes)
        done = Imported(outcomes, digest == expected, digest)
        if done.is_done:
            audit_record(
                tenant=tenant,
                actor=actor,
                action="tool_catalog.import",
                object_name=file_name[:200],
                data=dict(done.counts),
            )
        else:
            transaction.set_rollback(True)
    return done


def _digest(tenant: Tenant, outcomes: Sequence[RowImport]) -> str:
    facts = [
        [o.row.kind, o.row.number, o.name, o.status, [[f.name, f.before, f.after] for f in o.fields]]
        for o in outcomes
    ]
    return hashlib.sha256(json.dumps([tenant.pk, facts]).encode()).hexdigest()


class _Names:
    """Names of what rules refer to by id, and back, within one workspace."""

    def __init__(self, tenant: Tenant, actor: Actor) -> None:
        self._tenant, self._actor = tenant, actor
        people = Membership.objects.filter(tenant=tenant)
        keys = ApiKey.objects.filter(tenant=tenant)
        self._collections = dict(Collection.objects.visible_to(actor).values_list("pk", "name"))
        self._people = {str(pk): mail for pk, mail in people.values_list("user_id", "user__email")}
        self._keys = {str(pk): prefix for pk, prefix in keys.values_list("pk", "prefix")}

    def portable(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        """Return a rule with names; what is gone keeps its id, which no import takes."""
        kits = dict(Toolkit.objects.filter(tenant=self._tenant).values_list("pk", "name"))
        found = dict(terms)
        found["toolkit"] = kits.get(terms["toolkit"], terms["toolkit"])
        found["collection"] = self._collections.get(terms["collection"], terms["collection"])
        found["subject"] = self._subjects(terms["subject_kind"]).get(terms["subject"], terms["subject"])
        found["approver"] = self._subjects(terms["approver_kind"]).get(terms["approver"], terms["approver"])
        return found

    def local(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        """Return a rule with the ids of this workspace. Raises Invalid for a name that is not there."""
        kits = dict(Toolkit.objects.filter(tenant=self._tenant).values_list("pk", "name"))
        found = dict(terms)
        for field, names in (("toolkit", kits), ("collection", self._collections)):
            found[field] = _ident(names, terms[field], field) if terms[field] else None
        for kind, field in (("subject_kind", "subject"), ("approver_kind", "approver")):
            if terms[kind] in ("member", "api_key"):
                found[field] = _ident(self._subjects(terms[kind]), terms[field], terms[kind])
        return found

    def _subjects(self, kind: str) -> Mapping[str, str]:
        return {"member": self._people, "api_key": self._keys}.get(kind, {})


def _ident(names: Mapping[Any, str], name: str, noun: str) -> Any:
    found = [ident for ident, known in names.items() if known == name]
    if len(found) != 1:
        raise Invalid("invalid", f"There is no {noun.replace('_', ' ')} “{name[:120]}” in this workspace.")
    return found[0]


class _Import:
    """One import under way: it knows what is there, its own rows included."""

    def __init__(self, tenant: Tenant, actor: Actor) -> None:
        self._tenant, self._actor = tenant, actor
        self._names = _Names(tenant, actor)
        self._grants = {_key(grant_kept(row)) for row in ToolGrant.objects.filter(tenant=tenant).iterator()}

    def outcome(self, row: FileRow) -> RowImport:
        name = str(row.values.get("name") or row.values.get("target") or row.values.get("toolkit") or "")[
            :120
        ]
        if row.problem:
            return RowImport(row, name, "refused", row.problem)
        write = {"entries": self._entry, "toolkits": self._toolkit, "grants": self._grant}
        try:
            with transaction.atomic():
                status, fields = write[row.kind](dict(row.values))
        except DomainError as error:
            return RowImport(row, name, "refused", error.message)
        return RowImport(row, name, status, fields=fields)

    def _entry(self, values: dict[str, Any]) -> tuple[Status, Sequence[FieldChange]]:
        if values.get("timeout_s") is not None:
            values["timeout_s"] = float(values["timeout_s"])
        found = ToolEntry.objects.filter(tenant=self._tenant, name=values["name"]).first()
        before = entry_state(found) if found else None
        if before is not None and not fields_changed(before, before | values):
            return "unchanged", ()
        after = entry_state(entry_set(tenant=self._tenant, actor=self._actor, **values))
        return ("changed" if before else "new"), fields_changed(before, after)

    def _toolkit(self, values: dict[str, Any]) -> tuple[Status, Sequence[FieldChange]]:
        name = " ".join(values["name"].split())
        found = Toolkit.objects.filter(tenant=self._tenant, name=name).first()
        before = toolkit_state(found) if found else None
        stated = (before or {}) | values | {"name": name}
        if before == stated | {"tools": sorted(set(stated["tools"]))}:
            return "unchanged", ()
        after = toolkit_state(toolkit_set(tenant=self._tenant, actor=self._actor, **stated))
        return ("changed" if before else "new"), fields_changed(before, after)

    def _grant(self, values: dict[str, Any]) -> tuple[Status, Sequence[FieldChange]]:
        stated = {**_GRANT, **values}
        terms = self._names.local(stated)
        if terms["expires_at"]:
            terms["expires_at"] = _moment(terms["expires_at"])
        kept = terms | {"expires_at": terms["expires_at"] and terms["expires_at"].isoformat()}
        if _key(kept) in self._grants:
            return "unchanged", ()
        made = grant_create(tenant=self._tenant, actor=self._actor, **terms)
        made.refresh_from_db()
        self._grants.add(_key(grant_kept(made)))
        return "new", fields_changed(None, stated)


def _key(terms: Mapping[str, Any]) -> str:
    return json.dumps(terms, sort_keys=True)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(
            "invalid", f"“{text[:60]}” isn't a valid time. Write it like 2027-03-31T12:00:00+00:00."
        ) from error
    if found.tzinfo is None:
        raise Invalid("invalid", f"“{text[:60]}” has no time zone. Write {text[:60]}+00:00.")
    return found.astimezone(UTC)
