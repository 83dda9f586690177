"""Reads of runs and their journal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import Prefetch, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left

from basics.errors import Missing
from runs.approvals.selectors import ShownDecisions
from runs.models import DecisionStatus, PendingDecision, Run, RunEvent, RunStatus, ToolCall, ToolCallStatus
from runs.transcript import Transcript, transcript_of
from tenancy.actors import Actor

CONTENT_SHOWN = 4000


def transcript_read(run: Run, *, upto: int | None = None) -> Transcript:
    """Return what a watcher of the run sees now, or after its event ``upto``, from its events."""
    events = RunEvent.objects.filter(tenant_id=run.tenant_id, run=run).order_by("seq")
    if upto is not None:
        events = events.filter(seq__lte=upto)
    return transcript_of(events.values_list("seq", "kind", "data"))


def tool_calls_prefetch(lookup: str, **more: Any) -> Any:
    """Return a prefetch of tool calls as ``calls_shown``, in the order they started, as ``calls_shown`` selects them.

    Args:
        more: further columns.
    """
    shown = ToolCall.objects.defer("payload", "content").annotate(
        content_shown=Left("content", CONTENT_SHOWN + 1),
        own_summary=KeyTextTransform("summary", "payload"),
        **more,
    )
    return Prefetch(lookup, queryset=shown.order_by("pk"), to_attr="calls_shown")


def decided_prefetch(lookup: str) -> Any:
    """Return a prefetch of what was decided about a run's calls, as ``decisions_shown``, in order."""
    over = PendingDecision.objects.exclude(status__in=(DecisionStatus.PENDING, DecisionStatus.CANCELLED))
    rows = over.select_related("decided_by").order_by("decided_at", "pk")
    return Prefetch(lookup, queryset=rows, to_attr="decisions_shown")


def calls_shown(more: str) -> str:
    """Return a statement with the same columns for ``runs.stream.rows_read``, with the payload; its parameter is the run.

    Args:
        more: further columns.
    """
    return (
        "SELECT id, step, call_id, name, coalesce(arguments_masked, arguments) AS arguments, status, error_code, duration_ms, "  # noqa: S608 - constants of our own modules
        f"payload, left(content, {CONTENT_SHOWN + 1}) AS content_shown, payload->>'summary' AS own_summary, {more} "
        "FROM runs_toolcall WHERE tenant_id = own_tenant() AND run_id = %s ORDER BY id"
    )


def call_output(run: Run, pk: int) -> str:
    """Return the whole text that a call of a run gave its model. Raises Missing."""
    content = (
        ToolCall.objects.filter(tenant_id=run.tenant_id, run=run, pk=pk)
        .values_list("content", flat=True)
        .first()
    )
    if content is None:
        raise Missing("call")
    return content


def payload_list(run: Run) -> list[object]:
    """Return the payloads of a run's tool calls, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT payload FROM runs_toolcall WHERE tenant_id = %s AND run_id = %s AND payload IS NOT NULL ORDER BY id",
            [run.tenant_id, run.pk],
        )
        return [json.loads(payload) for (payload,) in cursor.fetchall()]


# What the provider cited of our own passages: its words for it, by the passage's id, the newest turn first.
_QUOTED = """
SELECT cited->>'passage', cited->>'quote' FROM runs_runstep s, jsonb_array_elements(s.turn->'citations') cited
WHERE s.tenant_id = {tenant} AND s.run_id = {run} AND cited->>'passage' <> '' ORDER BY s.index DESC
"""
# Of what calls have retrieved only the rows of certain passages: a whole payload takes longer to read than all else here.
_ROWS = """
SELECT r.item FROM runs_toolcall c, jsonb_array_elements(
    CASE jsonb_typeof(c.payload->'results') WHEN 'array' THEN c.payload->'results' END) WITH ORDINALITY AS r(item, place)
WHERE c.tenant_id = {tenant} AND c.run_id = {run} AND r.item->>'chunk_id' = ANY ({chunks}) ORDER BY c.id, r.place
"""


def cited_columns(tenant: str, run: str, chunks: str) -> str:
    """Return the columns that ``cited_take`` reads, as the statement around them names workspace, run and passages' ids."""
    rows = _ROWS.format(tenant=tenant, run=run, chunks=chunks)
    quotes = _QUOTED.format(tenant=tenant, run=run)
    return f"ARRAY({rows}), ARRAY(SELECT ARRAY[passage, quote] FROM ({quotes}) AS q(passage, quote))"  # noqa: S608 - names


def cited_take(values: Iterator[Any]) -> tuple[list[object], dict[str, str]]:
    """Return what certain passages were retrieved as, like ``payload_list``, and ``quotes_named``, from two columns."""
    rows, quotes = next(values), next(values)
    return [{"results": [json.loads(row) for row in rows]}], _first(quotes)


def quotes_named(run: Run) -> dict[str, str]:
    """Return the words that a run's model itself named as what its answer rests on, by the id of their passage.

    Only models that cite by themselves name any (``Turn.citations``); of several for one passage the last turn's first.
    """
    with connection.cursor() as cursor:
        cursor.execute(_QUOTED.format(tenant="%s", run="%s"), [run.tenant_id, run.pk])
        return _first(cursor.fetchall())


def _first(quotes: Iterable[Sequence[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for passage, quote in quotes:
        found.setdefault(passage, quote)
    return found


def payloads_named(runs: QuerySet[Run], names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the payloads of those calls of some runs that succeeded and have one of these names, oldest first."""
    rows = ToolCall.objects.filter(run__in=runs, name__in=names, status=ToolCallStatus.SUCCEEDED)
    payloads = rows.order_by("run_id", "step", "pk").values_list("payload", flat=True)
    return [payload for payload in payloads if isinstance(payload, dict)]


def run_get(*, actor: Actor, pk: int) -> Run:
    """Return one of the actor's own runs.

    Raises:
        Missing: there is none for the actor.
    """
    actor.require("run.read")
    run: Run | None = None
    if actor.user_id is not None:
        run = Run.objects.visible_to(actor).filter(pk=pk, user_id=actor.user_id).first()
    if run is None:
        raise Missing("run")
    return run


def decision_list(run: Run) -> list[PendingDecision]:
    """Return what a run waits for, in the order of its calls; nothing when it is not parked."""
    if run.status != RunStatus.PARKED:
        return []
    rows = PendingDecision.objects.filter(tenant_id=run.tenant_id, run=run, status=DecisionStatus.PENDING)
    return list(rows.order_by("pk"))


def decision_pages(*, actor: Actor, run: Run) -> QuerySet[PendingDecision]:
    """Return everything that one of the actor's own runs has waited for, the newest first."""
    own = run_get(actor=actor, pk=run.pk)
    rows: QuerySet[PendingDecision] = ShownDecisions.of(PendingDecision, actor).filter(run=own)
    return rows.select_related("run").order_by("-pk")
