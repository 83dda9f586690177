"""Versions of tools: stored as a source is read, accepted or rejected by a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.tools.connectors.base import FoundTool, SourceError
from apps.tools.models import ContractTest, ToolSource, ToolVersion
from apps.tools.sources.contract_tests import TestRun, tests_execute, tests_record
from apps.tools.sources.services import invalid, source_locked
from apps.tools.toolset.vectors import vectors_refresh
from basics.errors import Conflict, Missing
from basics.texts import gettext as _
from basics.texts import ngettext, number_told, shortened
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record
from toolloop.storable import json_storable, text_storable

MAX_TOOLS = 2_000
MAX_AT_ONCE = 2_000
State = ToolVersion.State


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What reading a source brought, by tool name."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()


@transaction.atomic
def versions_store(
    *, tenant: Tenant, actor: Actor, read: ToolSource, found: Sequence[FoundTool], accept_all: bool = False
) -> Refreshed | None:
    """Store what a source was found to have: nothing for a tool that did not change, else a version that waits.

    Args:
        read: the source as it was read, with what its kind filled in.
        found: its tools.
        accept_all: tools that never had a version are current at once.

    Returns:
        What changed; None, with nothing stored, when the source was edited or removed meanwhile.

    Raises:
        SourceError: too many tools, or two of one name.
    """
    with tenant_scope(tenant.pk):
        row = ToolSource.objects.select_for_update(of=("self",)).filter(pk=read.pk).first()
        if row is None or row.updated_at != read.updated_at:
            return None
        by_name = {tool.name: tool for tool in found}
        if len(by_name) != len(found):
            raise SourceError(_("Two of its tools have the same name."))
        if len(found) > MAX_TOOLS:
            raise SourceError(
                _("It has %(n)s tools; a source can have at most %(most)s.")
                % {"n": number_told(len(found)), "most": number_told(MAX_TOOLS)}
            )
        report = _store(row, by_name, accept_all)
        row.document, row.settings = text_storable(read.document), json_storable(read.settings)
        row.url, row.title = row.url or read.url, row.title or text_storable(read.title)[:120]
        row.status, row.problem, row.refreshed_at = ToolSource.Status.READY, "", timezone.now()
        row.save()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_source.read",
            object=row,
            object_name=row.name,
            data={
                "tools": len(found),
                "added": len(report.added),
                "changed": sorted(report.changed)[:50],
                "gone": sorted(report.gone)[:50],
                "accept_all": accept_all,
            },
        )
        if accept_all and report.added:
            vectors_refresh(tenant)
    return report


def _store(row: ToolSource, found: dict[str, FoundTool], accept_all: bool) -> Refreshed:
    known: dict[str, list[ToolVersion]] = {}
    for version in row.versions.defer("spec").order_by("number"):
        known.setdefault(version.tool_name, []).append(version)
    added: list[str] = []
    changed: list[str] = []
    returned: list[str] = []
    fresh: list[ToolVersion] = []
    moved: list[ToolVersion] = []  # before new ones are made: a tool has one waiting version at most
    back: list[ToolVersion] = []
    for name, tool in found.items():
        versions, digest = known.get(name, []), tool.digest()
        current = next((v for v in versions if v.state == State.CURRENT), None)
        waiting = next((v for v in versions if v.state == State.WAITING), None)
        same = next((v for v in reversed(versions) if v.digest == digest), None)
        if current is not None and current.is_gone:
            current.is_gone = False
            moved.append(current)
            returned.append(name)
        if waiting is not None and waiting is not same:
            waiting.state = State.RETIRED
            moved.append(waiting)
        if same is None:
            state = State.CURRENT if accept_all and not versions else State.WAITING
            (changed if versions else added).append(name)
            fresh.append(
                ToolVersion(
                    tenant_id=row.tenant_id,
                    source=row,
                    tool_name=name,
                    state=state,
                    digest=digest,
                    number=versions[-1].number + 1 if versions else 1,
                    spec=json_storable(tool.to_json()),
                    decided_at=timezone.now() if state == State.CURRENT else None,
                )
            )
        elif same.state == State.RETIRED:
            # The source went back to a form it had before: that one is offered again.
            same.state = State.WAITING
            back.append(same)
            changed.append(name)
    gone = []
    for name in known.keys() - found.keys():
        for version in known[name]:
            if version.state == State.WAITING:
                version.state = State.RETIRED
                moved.append(version)
            elif version.state == State.CURRENT and not version.is_gone:
                version.is_gone = True
                moved.append(version)
                gone.append(name)
    for rows in (moved, back):
        ToolVersion.objects.bulk_update(rows, ["state", "is_gone"], batch_size=500)
    ToolVersion.objects.bulk_create(fresh, batch_size=500)
    return Refreshed(tuple(added), tuple(changed), tuple(gone), tuple(returned))


@transaction.atomic
def source_failed(*, tenant: Tenant, pk: int, problem: str) -> None:
    """Say at a source why it could not be read; its tools stay as they are. Does nothing when it is gone."""
    with tenant_scope(tenant.pk):
        ToolSource.objects.filter(tenant=tenant, pk=pk).update(
            status=ToolSource.Status.FAILED, problem=shortened(text_storable(problem), 2_000)
        )


def version_accept(
    *, tenant: Tenant, actor: Actor, pks: Sequence[int], force: bool = False, source: int | None = None
) -> list[ToolVersion]:
    """Make versions current, after their tools' contract tests have passed with them; older ones retire.

    Any version that is not current may be accepted, an older one too: so a change is taken back. The tests are real
    calls and may take a minute; call it outside of transactions.

    Args:
        pks: ids of versions, of tools that differ.
        force: accept them although tests fail; the audit trail says so.
        source: they must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; one is not there.
        Invalid: two of one tool, or too many at once.
        Conflict: ``contract_tests_failed``, with the failures in ``data``; ``version_current``, ``version_gone``.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        rows = _versions(tenant, pks, source)
        for row in rows:
            _check_acceptable(row)
        ran = tests_execute(tenant=tenant, actor=actor, pairs=_tests_of(tenant, rows))
        # In a transaction of its own: how the tests ended is kept when nothing is accepted.
        tests_record(tenant=tenant, runs=ran)
        failed = [run for run in ran if run.problem]
        if failed and not force:
            raise _refusal(failed)
        return _accept(tenant, actor, rows, ran)


@transaction.atomic
def version_reject(
    *, tenant: Tenant, actor: Actor, pks: Sequence[int], source: int | None = None
) -> list[ToolVersion]:
    """Turn down versions that wait; their tools stay as they are, and a refresh does not offer the same again.

    Args:
        source: they must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; one is not there.
        Conflict: ``version_not_waiting``.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        rows = _versions(tenant, pks, source, lock=True)
        for row in rows:
            if row.state != State.WAITING:
                raise Conflict(
                    "version_not_waiting",
                    _("%(version)s is no longer waiting: it is %(state)s.")
                    % {"version": row, "state": row.get_state_display()},
                )
        _decide(rows, State.REJECTED, actor)
        _audit(tenant, actor, "tool_version.reject", rows, {})
    return rows


@transaction.atomic
def _accept(
    tenant: Tenant, actor: Actor, rows: list[ToolVersion], ran: Sequence[TestRun]
) -> list[ToolVersion]:
    for source in sorted({row.source_id for row in rows}):
        source_locked(tenant, source)
    locked = _versions(tenant, [row.pk for row in rows], lock=True)
    for row in locked:
        _check_acceptable(row)
    names = [row.tool_name for row in locked]
    ToolVersion.objects.filter(tenant=tenant, tool_name__in=names, state=State.CURRENT).update(
        state=State.RETIRED
    )
    _decide(locked, State.CURRENT, actor)
    failed = [run.test.name for run in ran if run.problem]
    data = {"tests": len(ran), "forced": bool(failed), "failed_tests": failed[:50]}
    _audit(tenant, actor, "tool_version.accept", locked, data)
    vectors_refresh(tenant)
    return locked


def _refusal(failed: Sequence[TestRun]) -> Conflict:
    first = failed[0]
    return Conflict(
        "contract_tests_failed",
        ngettext(
            "%(count)s contract test failed, so nothing was accepted. “%(test)s” of %(version)s: %(problem)s",
            "%(count)s contract tests failed, so nothing was accepted. “%(test)s” of %(version)s: %(problem)s",
            len(failed),
        )
        % {
            "count": len(failed),
            "test": first.test.name,
            "version": first.version,
            "problem": first.problem,
        },
        data={
            "failures": [
                {
                    "test": r.test.pk,
                    "name": r.test.name,
                    "tool": r.test.tool_name,
                    "version": r.version.number,
                    "problem": r.problem,
                }
                for r in failed
            ]
        },
    )


def _versions(
    tenant: Tenant, pks: Sequence[int], source: int | None = None, *, lock: bool = False
) -> list[ToolVersion]:
    """Return the versions of these ids, of tools that differ, in order of their names. Raises Invalid, Missing."""
    wanted = set(pks)
    if not 0 < len(wanted) <= MAX_AT_ONCE:
        raise invalid("versions", _("Choose 1 to %(most)s versions.") % {"most": number_told(MAX_AT_ONCE)})
    rows = ToolVersion.objects.filter(tenant=tenant, pk__in=wanted).order_by("tool_name", "pk")
    if source is not None:
        rows = rows.filter(source_id=source)
    found = list(rows.select_for_update(of=("self",)) if lock else rows.select_related("source"))
    if len(found) != len(wanted):
        raise Missing("version")
    if len({row.tool_name for row in found}) != len(found):
        raise invalid("versions", _("Two of these are versions of the same tool. Choose one."))
    return found


def _check_acceptable(row: ToolVersion) -> None:
    if row.state == State.CURRENT:
        raise Conflict("version_current", _("%(version)s is already the current version.") % {"version": row})
    if row.is_gone:
        raise Conflict("version_gone", _("The source no longer has %(tool)s.") % {"tool": row.tool_name})


def _tests_of(tenant: Tenant, rows: Sequence[ToolVersion]) -> list[tuple[ContractTest, ToolVersion]]:
    by_name = {row.tool_name: row for row in rows}
    tests = ContractTest.objects.filter(tenant=tenant, tool_name__in=by_name).order_by("pk")
    return [(test, by_name[test.tool_name]) for test in tests]


def _decide(rows: Iterable[ToolVersion], state: str, actor: Actor) -> None:
    now = timezone.now()
    for row in rows:
        row.state, row.decided_at, row.decided_by_id = state, now, actor.user_id
    ToolVersion.objects.bulk_update(list(rows), ["state", "decided_at", "decided_by"], batch_size=500)


def _audit(
    tenant: Tenant, actor: Actor, action: str, rows: Sequence[ToolVersion], data: dict[str, Any]
) -> None:
    """Write one event per source: it names the versions."""
    for source in sorted({row.source_id for row in rows}):
        own = [row for row in rows if row.source_id == source]
        audit_record(
            tenant=tenant,
            actor=actor,
            action=action,
            object_name=str(own[0]) if len(own) == 1 else f"{len(own)} versions",
            data={"source": source, "versions": [str(row) for row in own], **data},
        )
