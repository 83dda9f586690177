"""Write what the items of a driver have come to: many at once in one transaction, fenced item by item.

The number of commits follows time and not the number of calls. Who waits for a write goes on when it is committed;
nothing depends on a call before that.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from apps.datasets.models import Dataset, GenerationJob, ItemState
from apps.datasets.records.record import Record
from apps.datasets.rows.services import NewRow, rows_insert
from basics.gathering import Crowd, Gathered
from basics.texts import gettext_noop, kept, shortened
from jobs.notify import CHANNEL
from runs.services import AnsweredRun, runs_record
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.storable import json_storable

_MOST_REASON = 300
DUPLICATE = gettext_noop("The dataset already has this row.")
_HELD = """
SELECT id FROM datasets_generationitem WHERE tenant_id = own_tenant() AND id = ANY(%s) AND driver = %s ORDER BY id FOR UPDATE
"""
_WRITE = """
WITH told AS (
    SELECT * FROM jsonb_to_recordset(%(changes)s::jsonb) AS c (
        id bigint, state text, reason text, data jsonb, repairs int, failures int,
        spent_usd numeric, row_id bigint, wait_s float, is_released boolean, is_away boolean)
), paid AS (
    INSERT INTO datasets_paidcall (tenant_id, job_id, item_id, stage, attempt, step, turn, results,
        input_tokens, output_tokens, cost_usd, duration_ms)
    SELECT %(tenant)s, %(job)s, p.* FROM jsonb_to_recordset(%(paid)s::jsonb) AS p (
        item_id bigint, stage text, attempt int, step int, turn jsonb, results jsonb,
        input_tokens bigint, output_tokens bigint, cost_usd numeric, duration_ms int)
), used AS (
    INSERT INTO runs_usagerecord (tenant_id, user_id, step, kind, provider, model, service_tier, input_tokens,
        cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_usd, charged_usd,
        hold_id, duration_ms, attribution)
    SELECT %(tenant)s, %(user)s, u.* FROM jsonb_to_recordset(%(usage)s::jsonb) AS u (
        step int, kind text, provider text, model text, service_tier text, input_tokens bigint, cached_tokens bigint,
        cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint, cost_usd numeric,
        charged_usd numeric, hold_id bigint, duration_ms int, attribution jsonb)
), changed AS (
    UPDATE datasets_generationitem i SET
        state = c.state, reason = c.reason, data = c.data, repairs = c.repairs,
        failures = c.failures, spent_usd = c.spent_usd, row_id = c.row_id, deaths = 0,
        not_before = CASE WHEN c.wait_s > 0 THEN now() + make_interval(secs => c.wait_s) END,
        driver = CASE WHEN c.is_released THEN '' ELSE i.driver END,
        reserved_usd = CASE WHEN c.is_released AND NOT c.is_away THEN 0 ELSE i.reserved_usd END,
        updated_at = clock_timestamp()
    FROM told c WHERE i.tenant_id = %(tenant)s AND i.id = c.id
), got_on AS (
    UPDATE datasets_generationitem SET deaths = 0
    WHERE tenant_id = %(tenant)s AND deaths > 0 AND id = ANY(%(only_paid)s)
), next_round AS (
    UPDATE datasets_generationitem n SET state = 'question'
    FROM told c JOIN datasets_generationitem i ON i.tenant_id = %(tenant)s AND i.id = c.id
    WHERE c.state IN ('dropped', 'failed') AND n.tenant_id = i.tenant_id AND n.job_id = i.job_id AND n.slot = i.slot
        AND n.round = i.round + 1 AND n.state = 'spare'
), counted AS (
    UPDATE datasets_generationjob j SET kept = j.kept + n.kept, dropped = j.dropped + n.dropped,
        failed = j.failed + n.failed, spent_usd = j.spent_usd + n.spent
    FROM (SELECT count(*) FILTER (WHERE state = 'kept') AS kept,
            count(*) FILTER (WHERE state = 'dropped') AS dropped,
            count(*) FILTER (WHERE state = 'failed') AS failed, sum(spent_usd) AS spent
        FROM told WHERE state IN ('kept', 'dropped', 'failed')) n
    WHERE j.tenant_id = %(tenant)s AND j.id = %(job)s AND n.spent IS NOT NULL
)
SELECT pg_notify(%(channel)s, %(topic)s)
"""


class ItemLost(Exception):
    """Another worker has the item; nothing was written."""


@dataclass(frozen=True, slots=True)
class ItemChange:
    """What becomes of an item.

    Attributes:
        wait_s: seconds before anybody may try it again.
        is_released: this driver gives it back, or it has ended.
        is_away: it waits for a batch, and keeps what it reserves.
        record: of a kept row.
        run: the answer's journal, to be recorded as a run; its id is put into ``data`` as ``run_id``.
    """

    state: str
    data: dict[str, Any]
    spent_usd: Decimal
    reason: str = ""
    repairs: int = 0
    failures: int = 0
    wait_s: float = 0.0
    is_released: bool = False
    is_away: bool = False
    record: Record | None = None
    lineage: Mapping[str, Any] = field(default_factory=dict)
    run: AnsweredRun | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """One write of one item: a paid call, or a change, or both."""

    item_id: int
    paid: Mapping[str, Any] | None = None
    usage: tuple[Mapping[str, Any], ...] = ()
    change: ItemChange | None = None


class Committer:
    """Commits writes in groups; belongs to one event loop.

    Args:
        in_db: runs a function on the database threads.
        driver: who must have the items.
        crowd: the items under way.
        advanced: see ``Work``.
    """

    def __init__(
        self,
        *,
        tenant: Tenant,
        actor: Actor,
        dataset: Dataset,
        job: GenerationJob,
        driver: str,
        in_db: Callable[..., Awaitable[Any]],
        crowd: Crowd,
        advanced: Callable[[], None],
    ) -> None:
        self._tenant, self._actor, self._dataset, self._job = tenant, actor, dataset, job
        self._driver, self._in_db, self._advanced = driver, in_db, advanced
        self._groups: Gathered[Write, None] = Gathered(self._written, crowd)

    async def write(self, write: Write) -> None:
        """Commit a write; also when the caller is cancelled meanwhile: the call was paid for.

        Raises:
            ItemLost: this driver does not have the item any more.
            Exception: the database's.
        """
        await self._groups.ask(write)

    def leave(self, write: Write) -> None:
        """Have a write committed for which nobody waits."""
        self._groups.put(write)

    async def close(self) -> None:
        """Commit what is left, also that for which nobody waits any more."""
        await self._groups.flush()

    async def _written(self, writes: Sequence[Write]) -> list[Exception | None]:
        lost = await self._in_db(self._commit, writes)
        return [ItemLost(f"item {write.item_id}") if write.item_id in lost else None for write in writes]

    def _commit(self, writes: Sequence[Write]) -> set[int]:
        """Write what this driver may still write; returns the items that it has lost."""
        ids = {write.item_id for write in writes}
        with transaction.atomic(), connection.cursor() as cursor:
            self._advanced()
            cursor.execute(_HELD, [list(ids), self._driver])
            mine = {pk for (pk,) in cursor.fetchall()}
            held = [write for write in writes if write.item_id in mine]
            changes = {w.item_id: w.change for w in held if w.change is not None}
            written = {
                "changes": self._changes(changes),
                "paid": [{**w.paid, "item_id": w.item_id} for w in held if w.paid is not None],
                "usage": [columns for w in held for columns in w.usage],
            }
            values: dict[str, Any] = {
                "tenant": self._tenant.pk,
                "user": self._actor.user_id,
                "job": self._job.pk,
                "channel": CHANNEL,
                "topic": f"{self._tenant.pk}:{self._job.topic} ",
                "only_paid": [w.item_id for w in held if w.item_id not in changes],
            }
            texts = {name: json.dumps(rows) for name, rows in written.items()}
            cursor.execute(_WRITE, values | texts)
        return ids - mine

    def _changes(self, changes: Mapping[int, ItemChange]) -> list[dict[str, Any]]:
        """Record the runs and rows of changes; returns what becomes of their items."""
        answered = [(change, change.run) for change in changes.values() if change.run is not None]
        made = runs_record(
            tenant=self._tenant, user_id=self._actor.user_id, runs=[run for _, run in answered]
        )
        for (change, _), run_id in zip(answered, made, strict=True):
            change.data["run_id"] = run_id
        kept = self._keep({pk: change for pk, change in changes.items() if change.record})
        return [self._told(pk, change, kept.get(pk)) for pk, change in changes.items()]

    def _told(self, pk: int, change: ItemChange, row_id: int | None) -> dict[str, Any]:
        state, reason = change.state, change.reason
        if change.record is not None and row_id is None:
            state, reason = ItemState.DROPPED.value, DUPLICATE
        return {
            "id": pk,
            "state": str(state),
            "reason": json_storable(kept(shortened(reason, _MOST_REASON))),
            "data": json_storable(dict(change.data)),
            "repairs": change.repairs,
            "failures": change.failures,
            "spent_usd": str(change.spent_usd),
            "row_id": row_id,
            "wait_s": change.wait_s,
            "is_released": change.is_released,
            "is_away": change.is_away,
        }

    def _keep(self, changes: Mapping[int, ItemChange]) -> dict[int, int]:
        """Insert the rows of items that are kept; returns their ids by item, without those that are there already."""
        rows = [
            NewRow(change.record, lineage=change.lineage, run_id=change.data.get("run_id"))
            for change in changes.values()
            if change.record is not None
        ]
        if not rows:
            return {}
        made = rows_insert(self._tenant, self._actor, self._dataset, rows)
        if any(made):
            Dataset.objects.filter(pk=self._dataset.pk).update(updated_at=Now())
        return {pk: row_id for pk, row_id in zip(changes, made, strict=True) if row_id is not None}
