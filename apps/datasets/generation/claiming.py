"""Take items for a driver, within the budget; and end a job when nothing is left to take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import Sum
from django.db.models.functions import Now

from apps.datasets.generation.estimate import estimate_of
from apps.datasets.generation.rule_questions import NO_SENTENCE
from apps.datasets.generation.settings import Settings
from apps.datasets.generation.work import NO_MONEY, Item
from apps.datasets.models import (
    ITEM_OPEN,
    JOB_ACTIVE,
    GenerationItem,
    GenerationJob,
    GenerationState,
    ItemState,
    PaidCall,
    QuestionType,
)
from basics.texts import gettext as _
from basics.texts import gettext_noop
from notices.services import notice_put
from runs.providers import is_extractive
from toolloop.messages import Turn, message_from_json
from toolloop.providers.profiles import Profile
from toolloop.service import tier_charged
from toolloop.tokens import Usage

TOO_FEW = gettext_noop("There are too few suitable passages.")
CALL_TOKENS_IN, CALL_TOKENS_OUT = 10_000, 1_500
"""What one call is taken to need at most on the average, for the ceiling of a row."""
STAGE_CALLS, MOST_HOPS = 4, 2
SUSPECT, MOST_DEATHS = 2, 3
"""Workers that died in a row while an item got no further: then it is worked on alone, so that no other one is blamed; and
then it is what kills."""
# What a dead worker's item had under way may have been paid for; that of one whose calls are with a batch was not lost.
_BURY = """
UPDATE datasets_generationitem i SET
    driver = '', reserved_usd = 0, spent_usd = spent_usd + %(lost)s, deaths = deaths + 1
WHERE i.tenant_id = own_tenant() AND i.job_id = %(job)s AND i.state = ANY(%(open)s) AND i.driver <> '' AND i.id <> ALL (%(waiting)s::bigint[])
  AND NOT EXISTS (SELECT 1 FROM jobs_job j
      WHERE j.tenant_id = i.tenant_id AND j.status = 'running' AND i.driver = j.id || '.' || j.attempts)
"""
# An array, because a plan may run a plain subquery again for each row, and take more than the limit.
_TAKE = """
UPDATE datasets_generationitem SET driver = %(driver)s, reserved_usd = spent_usd + %(reserve)s
WHERE tenant_id = own_tenant() AND id = ANY (ARRAY(
    SELECT id FROM datasets_generationitem i
    WHERE i.tenant_id = own_tenant() AND i.job_id = %(job)s AND i.state = ANY(%(open)s) AND i.driver = ''
      AND (i.not_before IS NULL OR i.not_before <= now())
      AND i.id <> ALL (%(waiting)s::bigint[]) AND (i.deaths = %(suspect)s) = %(is_alone)s
    ORDER BY i.state = 'question', i.id LIMIT %(most)s FOR UPDATE SKIP LOCKED))
RETURNING id
"""
_UNDER_WAY = """
SELECT count(*), coalesce(sum(greatest(i.reserved_usd, i.spent_usd)), 0),
    count(*) FILTER (WHERE i.driver = %(driver)s),
    count(*) FILTER (WHERE i.driver = %(driver)s AND i.deaths = %(suspect)s),
    count(*) FILTER (WHERE i.driver <> '' AND i.deaths = %(suspect)s)
FROM datasets_generationitem i
WHERE i.tenant_id = own_tenant() AND i.job_id = %(job)s AND (i.driver <> '' OR i.id = ANY (%(waiting)s::bigint[]))
"""
_FREE = """
SELECT count(*) FROM (SELECT FROM datasets_generationitem i
    WHERE i.tenant_id = own_tenant() AND i.job_id = %s AND i.state = ANY(%s) AND i.driver = ''
        AND i.id <> ALL (%s::bigint[]) LIMIT %s) f
"""
_LEFT_BEHIND = """
SELECT coalesce(sum(i.spent_usd), 0) FROM datasets_generationitem i
WHERE i.tenant_id = own_tenant() AND i.job_id = %s AND i.state = ANY(%s) AND i.driver = '' AND i.id <> ALL (%s::bigint[])
"""


@dataclass(slots=True)
class Claim:
    """What a driver got.

    Attributes:
        state: the job's; a driver goes on only with a running one.
        is_done: nothing is open any more, or nothing will be before others have ended.
    """

    state: str
    items: list[Item] = field(default_factory=list)
    is_done: bool = False
    reason: str = ""


def row_ceiling(settings: Settings, profile: Profile | None) -> Decimal:
    """Return what one row may cost at most, in USD: as set, else from list prices; 0 where these are not known."""
    if settings.row_usd is not None:
        return Decimal(str(settings.row_usd))
    if profile is None:
        return Decimal(0)
    # A discount is not counted on: the provider says only afterwards in which tier it has served.
    tier = tier_charged("", settings.service_tier)
    usage = Usage(CALL_TOKENS_IN, output_total=CALL_TOKENS_OUT, requests=1)
    cost = profile.cost_usd(usage, tier) or 0.0
    calls = STAGE_CALLS + settings.max_steps + 1 + 2 * settings.max_repairs + MOST_HOPS + settings.max_refines
    if settings.types.get(QuestionType.MULTI_TURN):
        calls += (settings.max_turns - 1) * (settings.max_steps + 2)
    return Decimal(f"{cost * calls:.8f}")


def items_claim(
    job_id: int, driver: str, most: int, ceiling: Decimal, last: int = 0, waiting: Collection[int] = ()
) -> Claim:
    """Take up to ``most`` items that nobody works on, later stages first; up to ``last`` where that is all there is.

    Each reserves what a row may cost at most; the loop holds it to that. What a dead worker's item had under way may have
    been paid for and is counted as one call, so that the budget errs on the safe side. An item during which workers died
    is taken when nothing else is in hand, and nothing beside it.

    Args:
        waiting: items whose calls are with a batch; they are under way, and keep what they reserve.
    """
    with transaction.atomic():
        job: GenerationJob = GenerationJob.objects.select_for_update().get(pk=job_id)
        if job.state not in JOB_ACTIVE:
            return Claim(job.state, reason=job.reason)
        if job.state == GenerationState.QUEUED:
            job.state = GenerationState.RUNNING
            GenerationJob.objects.filter(pk=job_id).update(state=job.state, started_at=Now())
        settings = Settings.from_json(job.options)
        away = list(waiting)
        _buried(job_id, ceiling, settings, away)
        told = {"job": job_id, "driver": driver, "suspect": SUSPECT, "waiting": away}
        under_way, reserved, mine, alone, suspects = _asked(_UNDER_WAY, told)
        ended = job.kept + job.dropped + job.failed
        if last > most > 0 and _asked(_FREE, [job_id, list(ITEM_OPEN), away, last + 1])[0] <= last:
            most = last
        if job.probe:
            most = min(most, job.probe - ended - under_way)
            if not under_way and most <= 0:
                return _paused_after_probe(job)
        reserve = ceiling
        if job.budget_usd is not None and ceiling:
            left_behind = _asked(_LEFT_BEHIND, [job_id, list(ITEM_OPEN), away])[0]
            left = job.budget_usd - job.spent_usd - reserved - left_behind
            most = min(most, int(left / ceiling)) if left > 0 else 0
            if not most and not under_way and _has_open(job_id):
                if left <= _mean_cost(job):
                    return _halted(job, NO_MONEY)
                most, reserve = 1, left
        items: list[Item] = []
        if most > 0 and not alone:
            ids = _taken(job_id, driver, most, reserve, away)
            if not ids and not mine and not suspects:
                ids = _taken(job_id, driver, 1, reserve, away, is_alone=True)
            rows = GenerationItem.objects.filter(pk__in=ids).order_by("pk")
            items = [Item.of(row) for row in rows]
            for item in items:
                item.is_short = reserve < ceiling
            _paid_read(items)
        return Claim(job.state, items, is_done=not items and not _has_open(job_id))


def _asked(statement: str, values: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()


def _buried(job_id: int, ceiling: Decimal, settings: Settings, waiting: list[int]) -> None:
    """Take from dead workers what they had, and count their deaths against it."""
    # A batch's calls are recorded when they come, and none of them is lost with a worker.
    lost = Decimal(0) if settings.is_batched else ceiling / (STAGE_CALLS + settings.max_steps)
    values: dict[str, Any] = {"job": job_id, "lost": lost, "waiting": waiting, "open": list(ITEM_OPEN)}
    with connection.cursor() as cursor:
        cursor.execute(_BURY, values)


def _taken(
    job_id: int, driver: str, most: int, reserve: Decimal, waiting: list[int], *, is_alone: bool = False
) -> list[int]:
    values: dict[str, Any] = {
        "job": job_id,
        "driver": driver,
        "most": most,
        "reserve": reserve,
        "waiting": waiting,
        "open": list(ITEM_OPEN),
        "suspect": SUSPECT,
        "is_alone": is_alone,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        return [pk for (pk,) in cursor.fetchall()]


def _paid_read(items: list[Item]) -> None:
    by_pk = {item.pk: item for item in items}
    rows = PaidCall.objects.filter(item_id__in=by_pk).order_by("item_id", "attempt", "step")
    for item_id, stage, attempt, turn, results in rows.values_list(
        "item_id", "stage", "attempt", "turn", "results"
    ):
        item = by_pk[item_id]
        message = message_from_json(turn)
        # Only the stage that is next goes on from them; what earlier ones found stands in the item's data.
        if isinstance(message, Turn) and stage == item.state:
            item.paid.setdefault((stage, attempt), []).append((message, results))


def _has_open(job_id: int) -> bool:
    return GenerationItem.objects.filter(job_id=job_id, state__in=ITEM_OPEN).exists()


def _mean_cost(job: GenerationJob) -> Decimal:
    ended = job.kept + job.dropped + job.failed
    return job.spent_usd / ended if ended else Decimal(0)


def _halted(job: GenerationJob, reason: str, **more: Any) -> Claim:
    GenerationJob.objects.filter(pk=job.pk).update(state=GenerationState.PAUSED, reason=reason, **more)
    _note(job, GenerationState.PAUSED)
    return Claim(GenerationState.PAUSED, reason=reason)


def _paused_after_probe(job: GenerationJob) -> Claim:
    rows = GenerationItem.objects.filter(
        job=job, state__in=[ItemState.KEPT, ItemState.DROPPED, ItemState.FAILED]
    )
    ended = [
        (float(spent), state == ItemState.KEPT)
        for spent, state in rows.order_by("pk").values_list("spent_usd", "state")
    ]
    found = estimate_of(ended, job.wanted)
    reason = (
        _("The cost estimate is ready. Check it and the rows, then resume.")
        if found
        else _("None of the trial rows were kept. Check why, then resume or stop.")
    )
    return _halted(job, reason, probe=0, estimate=found)


def job_halt(job_id: int, reason: str) -> None:
    """Pause a job that cannot go on by itself; one that somebody has paused or ended stays as it is."""
    rows = GenerationJob.objects.filter(pk=job_id, state__in=JOB_ACTIVE)
    if rows.update(state=GenerationState.PAUSED, reason=reason):
        _note(GenerationJob.objects.get(pk=job_id), GenerationState.PAUSED)


def _note(job: GenerationJob, state: GenerationState) -> None:
    """Tell who started a job that it has ended, or waits for them."""
    notice_put(
        tenant_id=job.tenant_id, people=[job.created_by_id], kind="generation", pk=job.pk, state=state.value
    )


def items_release(job_id: int, driver: str) -> None:
    """Give back what a driver still has."""
    GenerationItem.objects.filter(job_id=job_id, driver=driver).update(driver="", reserved_usd=0)


def job_complete(job_id: int) -> bool:
    """End a job of which nothing is open, and say which quotas it has not met; tells whether this call ended it."""
    with transaction.atomic():
        job: GenerationJob = GenerationJob.objects.select_for_update().get(pk=job_id)
        if job.state not in JOB_ACTIVE or _has_open(job_id):
            return False
        items = GenerationItem.objects.filter(job=job)
        job.shortfall = shortfall_of(job)
        items.filter(state=ItemState.SPARE).delete()
        spent = items.aggregate(n=Sum("spent_usd"))["n"] or Decimal(0)
        job.state, job.reason, job.spent_usd = GenerationState.COMPLETED, "", spent
        job.save(update_fields=["state", "reason", "shortfall", "spent_usd"])
        GenerationJob.objects.filter(pk=job_id).update(finished_at=Now())
        _note(job, GenerationState.COMPLETED)
    return True


def shortfall_of(job: GenerationJob) -> list[dict[str, Any]]:
    """Return how many rows of each type and difficulty are missing, and the most frequent reason."""
    wanted = Counter((s["type"], s["difficulty"]) for s in job.manifest["slots"])
    items = GenerationItem.objects.filter(job=job)
    kept = Counter(items.filter(state=ItemState.KEPT).values_list("type", "difficulty"))
    reasons: dict[tuple[str, str], Counter[str]] = {}
    gone = items.filter(state__in=[ItemState.DROPPED, ItemState.FAILED])
    for kind, difficulty, reason in gone.values_list("type", "difficulty", "reason"):
        reasons.setdefault((kind, difficulty), Counter())[reason] += 1
    return [
        {
            "type": pair[0],
            "difficulty": pair[1],
            "wanted": count,
            "missing": count - kept[pair],
            "why": reasons[pair].most_common(1)[0][0]
            if reasons.get(pair)
            else NO_SENTENCE
            if is_extractive(job.model)
            else TOO_FEW,
        }
        for pair, count in sorted(wanted.items())
        if kept[pair] < count
    ]


def job_spend(job: GenerationJob) -> Decimal:
    """Return what a job has cost by now, items under way included."""
    open_items = GenerationItem.objects.filter(job=job, state__in=ITEM_OPEN)
    return job.spent_usd + (open_items.aggregate(n=Sum("spent_usd"))["n"] or Decimal(0))
