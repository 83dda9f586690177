"""Pages of the call log: the calls that one may see, one of them, and all of a run. They hold no rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.tools.call_log.reads import reads_choice, reads_shown
from apps.tools.models import ToolGrant
from apps.tools.policy.sentences import Names, grant_sentence
from basics.errors import Invalid
from runs.call_export import FORMS, calls_export
from runs.call_log import (
    CallChoice,
    call_choice,
    call_get,
    call_log,
    calls_made_by,
    calls_withhold,
    people_named,
    tool_names_recent,
)
from runs.models import CallDecision, CallPath, Run, ToolCall, ToolCallStatus
from runs.reads import reads_list
from runs.selectors import CONTENT_SHOWN
from tenancy.actors import Actor
from tenancy.selectors import member_list
from toolloop.json_cut import text_cut
from web.requests import TenantRequest, allowed, may_lag

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PAGE_SIZE = 50
CHAT = "conversation"
STATUS_WORDS = {
    ToolCallStatus.RUNNING.value: gettext_lazy("running"),
    ToolCallStatus.WAITING.value: gettext_lazy("waiting"),
    ToolCallStatus.SUCCEEDED.value: gettext_lazy("succeeded"),
    ToolCallStatus.FAILED.value: gettext_lazy("failed"),
    ToolCallStatus.DENIED.value: gettext_lazy("denied"),
    ToolCallStatus.UNKNOWN.value: gettext_lazy("unknown"),
    ToolCallStatus.STOPPED.value: gettext_lazy("stopped"),
}
DECISION_WORDS = {
    CallDecision.ALLOW.value: pgettext_lazy("effect", "allow"),
    CallDecision.ASK.value: pgettext_lazy("effect", "ask"),
    CallDecision.DENY.value: pgettext_lazy("effect", "deny"),
}
PATH_WORDS: dict[str, StrOrPromise] = {
    CallPath.CHAT.value: gettext_lazy("chat"),
    CallPath.JOB.value: gettext_lazy("job"),
    CallPath.CODE.value: gettext_lazy("code"),
    CallPath.REST.value: "rest",
    CallPath.MCP.value: "mcp",
}
"""How the page's filters and rows call what a call went through, in one word each."""


@never_cache
@require_GET
@allowed("run.read")
@may_lag
def calls(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List calls, the newest first; ``?before=`` goes on behind a call."""
    problem, choice = "", CallChoice()
    try:
        choice = call_choice(request.GET)
    except Invalid as error:
        problem = error.message
    rows = call_log(actor=request.actor, choice=choice)
    before = request.GET.get("before", "")
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = [] if problem else list(rows[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    everybody = request.actor.can("audit.read")
    context = {
        "tab": "calls",
        "calls": _named(request.actor, shown),
        "older": shown[-1].pk if len(found) > PAGE_SIZE else None,
        "is_later_page": bool(before),
        "choice": choice,
        "problem": problem,
        "query": urlencode(choice.to_query()),
        "is_narrowed": choice != CallChoice(),
        "is_everybody": everybody,
        "tools": tool_names_recent(actor=request.actor),
        "people": _people(request.actor) if everybody else [],
        "statuses": list(STATUS_WORDS.items()),
        "decisions": list(DECISION_WORDS.items()),
        "paths": list(PATH_WORDS.items()),
    }
    return render(request, "tools/calls.html", context)


@never_cache
@require_GET
@allowed("run.read")
def call(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show one call: what was asked, what was decided, what came of it."""
    row = call_get(actor=request.actor, pk=pk)
    parent = None
    if row.parent_call_id:
        same = call_log(actor=request.actor, choice=CallChoice(run=row.run_id))
        parent = same.filter(step=row.step, call_id=row.parent_call_id).first()
    context = {
        "tab": "calls",
        "call": _named(request.actor, [row])[0],
        "run": row.run,
        "arguments": _json(row.arguments_shown),
        "result": text_cut(row.content, CONTENT_SHOWN),
        "is_cut": len(row.content) > CONTENT_SHOWN,
        "payload": None if row.payload is None else text_cut(_json(row.payload), CONTENT_SHOWN),
        "rule": _rule(request.actor, row),
        "parent": parent,
        "made": _named(request.actor, calls_made_by(row)),
        "conversation": conversation_of(request.actor, row.run),
    }
    return render(request, "tools/call.html", context)


@never_cache
@require_GET
@allowed("run.read")
def calls_file(request: TenantRequest, tenant_slug: str) -> HttpResponseBase:
    """Download the calls that the filters leave."""
    form = request.GET.get("form", "csv")
    if form not in FORMS:
        raise Invalid(
            "invalid", _("Choose one of %(forms)s.") % {"forms": ", ".join(FORMS)}, data={"field": "form"}
        )
    choice = call_choice(request.GET)
    return calls_export(tenant=request.tenant, actor=request.actor, choice=choice, form=form)


@never_cache
@require_GET
@allowed("run.read")
@may_lag
def reads(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List which passages reached which answers, for whom; ``?before=`` goes on behind a row."""
    problem, choice = "", dict[str, int]()
    try:
        choice = reads_choice(request.GET)
    except Invalid as error:
        problem = error.message
    rows = reads_list(actor=request.actor, **choice)
    before = request.GET.get("before", "")
    if before.isascii() and before.isdecimal() and len(before) < 19:
        rows = rows.filter(pk__lt=int(before))
    found = [] if problem else list(rows[: PAGE_SIZE + 1])
    everybody = request.actor.can("audit.read")
    context = {
        "tab": "reads",
        "reads": reads_shown(request.actor, found[:PAGE_SIZE]),
        "older": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
        "is_later_page": bool(before),
        "choice": choice,
        "query": urlencode(choice),
        "problem": problem,
        "is_everybody": everybody,
        "people": _people(request.actor) if everybody else [],
    }
    return render(request, "tools/reads.html", context)


def conversation_of(actor: Actor, run: Run) -> int | None:
    """Return the id of the conversation that a run answers in, where that is the actor's own."""
    found = run.request.get("conversation") if run.kind == CHAT else None
    return found if isinstance(found, int) and run.user_id == actor.user_id else None


def _named(actor: Actor, rows: list[ToolCall]) -> list[dict[str, Any]]:
    calls_withhold(actor, rows)
    names = people_named(row.user_id for row in rows)
    return [
        {"row": row, "who": names.get(row.user_id or 0, ""), "path": PATH_WORDS.get(row.path, row.path)}
        for row in rows
    ]


def _people(actor: Actor) -> list[tuple[int, str]]:
    members = member_list(actor=actor)
    return [(m.user_id, m.user.get_full_name() or m.user.email) for m in members]


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _rule(actor: Actor, row: ToolCall) -> str:
    """Return the grant that decided as it stands now, in words, for those who may see grants."""
    if row.rule_id is None or not actor.can("tool.manage"):
        return ""
    found = ToolGrant.objects.visible_to(actor).select_related("toolkit", "collection")
    grant = found.filter(pk=row.rule_id).first()
    if grant is None:
        return _("The rule has been deleted since.")
    subject = int(grant.subject) if grant.subject.isdecimal() else None
    people = {str(pk): name for pk, name in people_named([subject]).items()}
    return grant_sentence(grant, replace(Names(), members=people))
