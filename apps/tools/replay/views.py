"""Pages of replays: what was recorded beside what would be now. They hold no rules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.tools.replay.services import recorded_call_replay, recorded_run_replay
from runs.services import ReplayRow
from web.requests import TenantRequest, allowed

SHOWN = 4000
_WORDS = re.compile(r"\S+|\s+")
_NAMES = {
    "says": gettext_lazy("Says"),
    "calls": pgettext_lazy("verb", "Calls"),
    "result": gettext_lazy("Result"),
    "ends": pgettext_lazy("verb", "Ends"),
    "tool": gettext_lazy("Tool"),
    "arguments": gettext_lazy("Arguments"),
    "policy": gettext_lazy("Policy"),
}


@dataclass(frozen=True, slots=True)
class ReplayedRow:
    """A row as the page shows it: both texts cut into (text, differs)."""

    step: int
    kind: str
    is_equal: bool
    recorded: Sequence[tuple[str, bool]]
    replayed: Sequence[tuple[str, bool]]


@never_cache
@require_POST
@allowed("run.read")
def run(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Replay a run; ``ask_model=true`` asks its model anew."""
    ask_model = request.POST.get("ask_model") == "true"
    found, replay = recorded_run_replay(
        tenant=request.tenant, actor=request.actor, pk=pk, ask_model=ask_model
    )
    context = {
        "tab": "calls",
        "title": _("Run %(run)s") % {"run": found.pk},
        "run_pk": found.pk,
        "call_pk": None,
        "replay": replay,
        "rows": [shown(row) for row in replay.rows],
        "asked_model": ask_model,
        "is_run": True,
    }
    return render(request, "tools/replay.html", context)


@never_cache
@require_POST
@allowed("run.read")
def call(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Hold a call against today's tool and rules."""
    found, replay = recorded_call_replay(actor=request.actor, pk=pk)
    context = {
        "tab": "calls",
        "title": found.name,
        "run_pk": found.run_id,
        "call_pk": found.pk,
        "replay": replay,
        "rows": [shown(row) for row in replay.rows],
        "asked_model": False,
        "is_run": False,
    }
    return render(request, "tools/replay.html", context)


def shown(row: ReplayRow) -> ReplayedRow:
    """Return a row with what differs marked, word by word."""
    left, right = row.recorded[:SHOWN], row.replayed[:SHOWN]
    if row.is_equal or not left or not right:
        marks = not row.is_equal
        return ReplayedRow(row.step, str(_NAMES[row.kind]), row.is_equal, [(left, marks)], [(right, marks)])
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    one: list[tuple[str, bool]] = []
    other: list[tuple[str, bool]] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        one.append(("".join(a[i:j]), tag != "equal"))
        other.append(("".join(b[k:m]), tag != "equal"))
    return ReplayedRow(row.step, str(_NAMES[row.kind]), False, one, other)
