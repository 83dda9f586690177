"""The log of tool calls: who called what, when, by which rule and with what outcome. People see their own calls, those who
may read the audit trail see everybody's."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Coalesce, Left
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy

from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from runs.models import CallDecision, CallPath, ToolCall, ToolCallStatus
from runs.withheld import runs_lost, runs_withheld
from tenancy.actors import Actor
from tenancy.models import User

PRIVATE = "private"
"""Key of ``Run.request``: what the run works on is its person's alone, and so are the results of its calls."""
WITHHELD = gettext_lazy("Not shown: this run used files that only their owner can see.")
SEARCHED = 4000
"""Characters of a result that a search looks at."""
EXPORT_BATCH = 500
_MAX_TEXT = 200
_BIGINT = 2**63 - 1
_WORDS: Mapping[str, Iterable[str]] = {
    "status": ToolCallStatus.values,
    "decision": CallDecision.values,
    "path": CallPath.values,
}


@dataclass(frozen=True, slots=True)
class CallChoice:
    """Which calls are asked for; what is empty or None does not narrow.

    Attributes:
        who: id of the person whose run it was.
        tool: its whole name.
        run: id of the run.
        status, decision, path: values of the columns.
        since, until: first and last day, in the server's time zone.
        text: occurs in name, arguments (as shown), reasons, error code or the beginning of the result.
    """

    who: int | None = None
    tool: str = ""
    run: int | None = None
    status: str = ""
    decision: str = ""
    path: str = ""
    since: datetime.date | None = None
    until: datetime.date | None = None
    text: str = ""

    def to_query(self) -> dict[str, str]:
        """Return it as parameters of an address, which ``call_choice`` reads back."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in values.items() if value not in (None, "")}


def call_choice(given: Mapping[str, Any]) -> CallChoice:
    """Read a choice from the parameters of an address.

    Raises:
        Invalid: a parameter means nothing; ``data["fields"]`` says which and why.
    """
    problems: dict[str, list[str]] = {}
    values: dict[str, Any] = {}
    for name in (field.name for field in fields(CallChoice)):
        text = str(given.get(name) or "").strip()
        if not text:
            continue
        value, problem = _read(name, text)
        values[name] = value
        if problem:
            problems[name] = [problem]
    since, until = values.get("since"), values.get("until")
    if not problems and since and until and since > until:
        problems["until"] = [_("The last day is before the first.")]
    if problems:
        said = " ".join(problem for found in problems.values() for problem in found)
        raise Invalid("invalid", said, data={"fields": problems})
    return CallChoice(**values)


def _read(name: str, text: str) -> tuple[Any, str]:
    if len(text) > _MAX_TEXT or "\x00" in text:
        return None, _("Enter text of at most %(most)s characters.") % {"most": _MAX_TEXT}
    if name in ("who", "run"):
        if text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= _BIGINT:
            return int(text), ""
        return None, _("Ids are whole numbers.")
    if name in ("since", "until"):
        try:
            day = parse_date(text)
        except ValueError:
            day = None
        return day, "" if day else _("Write a day like 2026-11-22.")
    known = _WORDS.get(name)
    if known is not None and text not in known:
        return None, _("Choose one of %(values)s.") % {"values": ", ".join(known)}
    return text, ""


def calls_visible(actor: Actor) -> QuerySet[ToolCall]:
    """Return the calls an actor may see: everybody's with the right ``audit.read``, else their own.

    Raises:
        Denied: without the right ``run.read``.
    """
    actor.require("run.read")
    rows: QuerySet[ToolCall] = ToolCall.objects.visible_to(actor)
    if actor.can("audit.read"):
        return rows
    return rows.none() if actor.user_id is None else rows.filter(user_id=actor.user_id)


def call_log(*, actor: Actor, choice: CallChoice = CallChoice()) -> QuerySet[ToolCall]:
    """Return the calls of a choice, the newest first, without results. Raises Denied."""
    rows = _narrowed(actor, calls_visible(actor), choice)
    return rows.defer("content", "payload").order_by("-pk")


def _narrowed(actor: Actor, rows: QuerySet[ToolCall], choice: CallChoice) -> QuerySet[ToolCall]:
    exact = {
        "user_id": choice.who,
        "name": choice.tool,
        "run_id": choice.run,
        "status": choice.status,
        "decision": choice.decision,
        "path": choice.path,
    }
    rows = rows.filter(**{name: value for name, value in exact.items() if value not in (None, "")})
    if choice.since is not None:
        rows = rows.filter(started_at__gte=day_start(choice.since))
    if choice.until is not None:
        rows = rows.filter(started_at__lt=day_start(choice.until + datetime.timedelta(days=1)))
    if choice.text:
        # What is masked or withheld cannot be found either: else it could be guessed letter by letter.
        told = ~Q(run_id__in=runs_lost(actor))
        rows = rows.alias(
            arguments_text=Cast(Coalesce("arguments_masked", "arguments"), TextField()),
            result_text=Left("content", SEARCHED),
        ).filter(
            Q(name__icontains=choice.text)
            | Q(error_code__icontains=choice.text)
            | (told & Q(arguments_text__icontains=choice.text))
            | (told & Q(decision_why__icontains=choice.text))
            | (told & _readable(actor) & Q(result_text__icontains=choice.text))
        )
    return rows


def _readable(actor: Actor) -> Q:
    """Return which calls' results an actor may read: of a private run (``PRIVATE``) its person alone."""
    return Q(user_id=actor.user_id, user_id__isnull=False) | ~Q(**{f"run__request__{PRIVATE}": True})


def day_start(day: datetime.date) -> datetime.datetime:
    """Return when a day begins in the server's time zone."""
    return timezone.make_aware(datetime.datetime.combine(day, datetime.time.min))


def call_get(*, actor: Actor, pk: int) -> ToolCall:
    """Return one call with its run; of somebody else's private run, without the result. Raises Denied, Missing."""
    found: ToolCall | None = calls_visible(actor).select_related("run").filter(pk=pk).first()
    if found is None:
        raise Missing("tool call")
    calls_withhold(actor, [found])
    if found.run.request.get(PRIVATE) and found.user_id != actor.user_id:
        found.content, found.payload = str(WITHHELD), None
    return found


def calls_withhold(actor: Actor, calls: Iterable[ToolCall]) -> None:
    """Take out of calls what the actor may not see of the documents that were read in their runs; see ``runs.withheld``."""
    by_run: dict[int, list[ToolCall]] = {}
    for call in calls:
        by_run.setdefault(call.run_id, []).append(call)
    for pk, found in runs_withheld(actor, by_run).items():
        for call in by_run[pk]:
            call.arguments = found.value(call.arguments)
            call.arguments_masked = found.value(call.arguments_masked)
            call.decision_why = found.text(call.decision_why)
            if "content" not in call.get_deferred_fields():
                call.content, call.payload = found.content(call.content), found.value(call.payload)


def calls_made_by(call: ToolCall) -> list[ToolCall]:
    """Return the calls that a call of a tool or program made, in their order, without results."""
    rows = ToolCall.objects.filter(
        tenant_id=call.tenant_id, run_id=call.run_id, step=call.step, parent_call_id=call.call_id
    )
    return list(rows.defer("content", "payload").order_by("pk"))


def tool_names_recent(*, actor: Actor) -> list[str]:
    """Return the names of tools in the newest 2,000 calls, to filter by."""
    return sorted(set(call_log(actor=actor).values_list("name", flat=True)[:2000]))


def people_named(ids: Iterable[int | None]) -> dict[int, str]:
    """Return what to call some people; one that is gone has no entry."""
    wanted = {pk for pk in ids if pk is not None}
    found = User.objects.filter(pk__in=wanted) if wanted else ()
    return {person.pk: person.get_full_name() or person.email for person in found}


def call_facts(call: ToolCall, who: str = "") -> dict[str, Any]:
    """Return a call as the API and exports tell it, without its result; secrets masked."""
    return {
        "id": call.pk,
        "run": call.run_id,
        "user": call.user_id,
        "user_name": who,
        "path": call.path,
        "step": call.step,
        "call_id": call.call_id,
        "parent_call_id": call.parent_call_id,
        "tool": call.name,
        "tool_version": call.tool_version,
        "arguments": call.arguments_shown,
        "decision": call.decision,
        "rule": call.rule_id,
        "decision_why": call.decision_why,
        "status": call.status,
        "error_code": call.error_code,
        "attempts": call.attempts,
        "result_size": call.result_size,
        "cost_usd": call.cost_usd,
        "started_at": call.started_at,
        "finished_at": call.finished_at,
        "duration_ms": call.duration_ms,
    }


def calls_batched(
    rows: QuerySet[ToolCall],
    reader: Callable[[int], Actor],
    read: Callable[[Callable[[], CallBatch]], CallBatch],
) -> Iterator[list[dict[str, Any]]]:
    """Yield the facts of calls, the newest first, in batches of two statements each: no transaction stays open.

    Args:
        reader: gives who reads them in a workspace.
        read: calls the function that reads a batch, from the database of its choice; that function may run twice.
    """
    before: int | None = None
    while True:
        facts, before = read(partial(_batch_read, rows, reader, before))
        if not facts:
            return
        yield facts


CallBatch = tuple[list[dict[str, Any]], int | None]
"""Facts of calls, and the id of the last of them."""


def _batch_read(rows: QuerySet[ToolCall], reader: Callable[[int], Actor], before: int | None) -> CallBatch:
    page = list((rows if before is None else rows.filter(pk__lt=before))[:EXPORT_BATCH])
    if not page:
        return [], before
    for tenant_id in {call.tenant_id for call in page}:
        calls_withhold(reader(tenant_id), [c for c in page if c.tenant_id == tenant_id])
    names = people_named(call.user_id for call in page)
    return [call_facts(call, names.get(call.user_id or 0, "")) for call in page], page[-1].pk
