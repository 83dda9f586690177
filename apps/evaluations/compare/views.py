"""The page that compares two arms. It holds no rules: ``comparison`` computes, ``charts`` draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from apps.datasets.records.record import from_values
from apps.evaluations.arms.targets import target_read, target_told
from apps.evaluations.compare import charts
from apps.evaluations.compare.comparison import PASS, Comparison, arms_compare, verdict
from apps.evaluations.compare.gate import advisory_names
from apps.evaluations.compare.services import baseline_set
from apps.evaluations.judges.calibrations import arms_read, has_calibration
from apps.evaluations.models import Arm, Preference, Score, ScoreAuthor, Trial
from apps.evaluations.results import selectors
from apps.evaluations.results.labels import label, money_told
from apps.evaluations.results.withheld import rows_hidden
from apps.evaluations.results.word_diff import word_diff
from apps.evaluations.scorers.turns import said_before
from basics import texts
from basics.errors import Conflict, DomainError, Missing
from basics.texts import number_told
from web.requests import TenantRequest, allowed
from web.views.members import posted_id

ROWS, CHOICES, CHARTED = 12, 60, 10


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the five figures: value now, its change, what it was, and whether the change is good (None: neither)."""

    name: str
    value: str
    change: str
    before: str
    is_good: bool | None
    is_up: bool


@require_GET
@allowed("evaluation.read")
def compare(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Compare ``?a=`` with ``?b=``, by ``?score=``, with ``?row=`` open; ``?order=best`` turns the list round."""
    choices = list(selectors.arm_list(actor=request.actor)[:CHOICES])
    a, b = _chosen(request, choices, "a"), _chosen(request, choices, "b")
    context: dict[str, Any] = {"choices": choices, "a": a, "b": b, "query": request.GET}
    if a is None or b is None:
        return render(request, "evaluations/compare.html", context)
    context["told"] = [target_told(target_read(arm.target)) for arm in (a, b)]
    context["swap"] = _query(request, a=b.pk, b=a.pk)
    try:
        is_calibrated = request.GET.get("calibrated") == "1"
        read = arms_read(actor=request.actor, a=a, b=b, is_calibrated=is_calibrated)
        found = arms_compare(read.a, read.b, leading=request.GET.get("score", ""))
    except Conflict as error:
        context["problem"] = error.message
        return render(request, "evaluations/compare.html", context)
    context |= _shown(request, found, a, b)
    context |= {
        "is_calibrated": is_calibrated,
        "readings": [(label(name), *pair) for name, pair in read.readings.items()],
        "calibrated_names": set(read.readings),
        "calibrated_url": _query(request, calibrated=None if is_calibrated else 1),
        "can_calibrate": is_calibrated or has_calibration(actor=request.actor, scores=read.b),
    }
    context["advisory"] = advisory_names(actor=request.actor, arm=b, scores=read.b, found=found)
    return render(request, "evaluations/compare.html", context)


@require_POST
@allowed("evaluation.write")
def promote(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make an arm the baseline of its dataset, and show the experiment, or with ``to=gate`` what the gate says now."""
    arm = selectors.arm_get(actor=request.actor, pk=posted_id(request, "arm"))
    try:
        baseline_set(tenant=request.tenant, actor=request.actor, arm=arm)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request,
            _("“%(name)s” is the baseline of %(dataset)s.")
            % {"name": arm.name, "dataset": arm.experiment.dataset},
        )
        if request.POST.get("to") == "gate":
            return redirect("evaluations:gate", tenant_slug, arm.pk)
    return redirect("evaluations:detail", tenant_slug, arm.experiment_id)


def _chosen(request: TenantRequest, choices: list[Arm], name: str) -> Arm | None:
    """Return the arm that the address names; without one, the first two of the newest experiment that has two."""
    text = request.GET.get(name, "")
    if text:
        if not text.isdecimal() or len(text) > 18:
            raise Missing("arm")
        known = next((arm for arm in choices if arm.pk == int(text)), None)
        return known or selectors.arm_get(actor=request.actor, pk=int(text))
    for first, second in pairwise(choices):
        if first.experiment_id == second.experiment_id:
            return first if name == "a" else second
    return None


def _shown(request: TenantRequest, found: Comparison, a: Arm, b: Arm) -> dict[str, Any]:
    head, told = verdict(found)
    criteria = list(found.criteria)
    charted = ([c for c in criteria if c.name != "overall"] or criteria)[:CHARTED]
    is_best = request.GET.get("order") == "best"
    hidden = rows_hidden(actor=request.actor, arm=a) | rows_hidden(actor=request.actor, arm=b)
    listed = [row for row in found.rows if row.row not in hidden] if hidden else found.rows
    rows = listed[: -ROWS - 1 : -1] if is_best else listed[:ROWS]
    questions = selectors.arm_questions(actor=request.actor, arm=a, rows=[row.row for row in rows])
    chosen = request.GET.get("row", "")
    place = next((n for n, row in enumerate(rows) if str(row.row) == chosen), 0)
    return {
        "found": found,
        "head": head,
        "sentence": told,
        "figures": _figures(found),
        "wide": charts.dumbbells(charted, is_narrow=False),
        "narrow": charts.dumbbells(charted, is_narrow=True),
        "chart_told": charts.dumbbells_told(charted),
        "bins": charts.histogram(found.bins),
        "scores": [(c.name, label(c.name)) for c in criteria],
        "leading": found.leading.name,
        "tests": [(label(c.name), c, charts.signed(c.change.value), c.p_corrected < 0.001) for c in criteria],
        "rows": [
            (
                row,
                questions.get(row.row, ""),
                charts.signed(row.change),
                _query(request, row=row.row),
                n == place,
            )
            for n, row in enumerate(rows)
        ],
        "is_best": is_best,
        "order_url": _query(request, order="worst" if is_best else "best", row=None),
        "opened": _opened(request, rows[place].row, questions, a, b) if rows else None,
        "before_url": _query(request, row=rows[place - 1].row) if place else "",
        "after_url": _query(request, row=rows[place + 1].row) if place + 1 < len(rows) else "",
        "needs_told": ", ".join(
            f"{number_told(effect, 2)}: {number_told(rows)}" for effect, rows in found.needs
        ),
        "can_promote": request.actor.can("evaluation.write"),
    }


def _opened(request: TenantRequest, row: int, questions: dict[int, str], a: Arm, b: Arm) -> dict[str, Any]:
    trials = {
        trial.arm_id: trial
        for trial in Trial.objects.visible_to(request.actor)
        .filter(arm__in=(a, b), row_ref=row, repeat=0)
        .select_related("content")
    }
    first, second = trials.get(a.pk), trials.get(b.pk)
    left, right = word_diff(first.answer if first else "", second.answer if second else "")
    notes = (
        Score.objects.visible_to(request.actor)
        .filter(trial=second, author_kind=ScoreAuthor.JUDGE, value__isnull=False)
        .exclude(reason="")
        .order_by("value", "name")
    )
    lowest = list(notes[:3])
    tool_scores = Score.objects.visible_to(request.actor).filter(
        trial__in=[t for t in (first, second) if t], name__in=("tool_calls", "forbidden_tools")
    )
    by_trial: dict[int, list[Score]] = {}
    for score in tool_scores.order_by("-name"):
        by_trial.setdefault(score.trial_id, []).append(score)
    return {
        "pair": _verdict(request, first, second) if first and second else None,
        "calls": [
            (side, *_calls_told(by_trial.get(trial.pk, ())))
            for side, trial in (("A", first), ("B", second))
            if trial and by_trial.get(trial.pk)
        ],
        "question": questions.get(row, ""),
        "said": said_before(from_values(asked.content.data)) if (asked := first or second) else [],
        "sides": [("A", first, left), ("B", second, right)],
        "note": lowest[0] if lowest else None,
        "lowest": [(label(score.name), score.value) for score in lowest],
    }


def _verdict(request: TenantRequest, first: Trial, second: Trial) -> dict[str, Any] | None:
    """Return what a judge of pairs said of these two answers, as A and B stand on this page."""
    either = Q(a=first, b=second) | Q(a=second, b=first)
    found = Preference.objects.visible_to(request.actor).filter(either).order_by("pk").first()
    if found is None:
        return None
    names = {"a": "A" if found.a_id == first.pk else "B", "b": "B" if found.a_id == first.pk else "A"}
    told = {"tie": _("Neither is better"), "": _("The judge could not decide")}
    return {
        "told": told.get(found.better) or _("%(side)s is better") % {"side": names[found.better]},
        "is_flip": found.is_flip,
        "reason": found.reason,
    }


def _calls_told(scores: Sequence[Score]) -> tuple[list[str], list[dict[str, str]]]:
    """Return in words what is wrong with an answer's tool calls, and the arguments that differ."""
    told: list[str] = []
    changes: list[dict[str, str]] = []
    for score in scores:
        if score.name == "forbidden_tools" and score.reason:
            told.append(_("Forbidden tools were used. %(reason)s") % {"reason": texts.told(score.reason)})
        for gap in score.details.get("differences", ()):
            if gap["is_missing"]:
                told.append(_("%(name)s was not called.") % {"name": gap["name"]})
                continue
            changes += [
                {
                    "path": f"{gap['name']}: {name}",
                    "kind": _("not as expected"),
                    "before": ", ".join(json.dumps(x, ensure_ascii=False) for x in one["allowed"]),
                    "after": json.dumps(one["given"], ensure_ascii=False),
                }
                for name, one in sorted(gap["arguments"].items())
            ]
        if further := score.details.get("further_calls"):
            more = ngettext("%(count)s further call.", "%(count)s further calls.", further)
            told.append(more % {"count": further})
    if not told and not changes:
        told.append(_("The tools were called as expected."))
    return told, changes


def _figures(found: Comparison) -> list[Figure]:
    lead = found.leading
    figures = [
        _share(
            _("Overall score") if lead.name == "overall" else label(lead.name),
            lead.a.value,
            lead.b.value,
            is_points=False,
        ),
        _share(
            _("Pass rate, %(pass)s and up") % {"pass": number_told(PASS, None)},
            found.pass_a,
            found.pass_b,
            is_points=True,
        ),
    ]
    cited = next((c for c in found.criteria if c.name in ("citation_precision", "faithfulness")), None)
    if cited is not None:
        name = _("Citations that support") if cited.name.startswith("citation") else _("Claims supported")
        figures.append(_share(name, cited.a.value, cited.b.value, is_points=True))
    else:
        figures.append(
            Figure(
                _("Smallest detectable difference"),
                number_told(found.smallest, 2),
                "",
                ngettext("%(count)s question", "%(count)s questions", len(found.rows))
                % {"count": number_told(len(found.rows))},
                None,
                False,
            )
        )
    if found.latency is not None:
        before, after = (ms / 1000 for ms in found.latency)
        figures.append(
            _less(
                _("Median time"),
                before,
                after,
                *(f"{number_told(s, 1)} s" for s in (after, before, abs(after - before))),
            )
        )
    if found.cost is not None:
        before, after = found.cost
        change = f"{number_told(abs(after / before - 1) * 100)}\u00a0%" if before else ""
        figures.append(
            _less(_("Cost per answer"), before, after, money_told(after), money_told(before), change)
        )
    if found.solved_cost is not None and any(found.solved_cost):
        was, now = (None if x is None else money_told(x) for x in found.solved_cost)
        figures.append(
            Figure(
                _("Cost per solved question"),
                now or _("none solved"),
                "",
                _("from %(before)s") % {"before": was or _("none solved")},
                None,
                False,
            )
        )
    return figures


def _share(name: str, before: float, after: float, *, is_points: bool) -> Figure:
    change = after - before
    is_same = abs(change) < 0.005
    if is_points:
        values = (
            f"{number_told(after * 100)}\u00a0%",
            _("%(points)s pt") % {"points": number_told(abs(change) * 100)},
            f"{number_told(before * 100)}\u00a0%",
        )
    else:
        values = (number_told(after, 2), number_told(abs(change), 2), number_told(before, 2))
    return Figure(
        name,
        values[0],
        "" if is_same else values[1],
        _("from %(before)s") % {"before": values[2]},
        None if is_same else change > 0,
        change > 0,
    )


def _less(name: str, before: float, after: float, value: str, was: str, change: str) -> Figure:
    is_same = value == was
    return Figure(
        name,
        value,
        "" if is_same else change,
        _("from %(before)s") % {"before": was},
        None if is_same else after < before,
        after > before,
    )


def _query(request: TenantRequest, **changes: Any) -> str:
    kept = {
        k: request.GET[k] for k in ("a", "b", "score", "order", "row", "calibrated") if request.GET.get(k)
    }
    kept |= {k: str(v) for k, v in changes.items()}
    return "?" + urlencode({k: v for k, v in kept.items() if v != "None"})
