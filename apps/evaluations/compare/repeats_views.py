"""The page of an arm's repeats: what varies, and which rows are flaky. It holds no rules: ``repeats`` computes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET

from apps.evaluations.compare.comparison import PASS
from apps.evaluations.compare.repeats import arm_repeats
from apps.evaluations.results import selectors
from apps.evaluations.results.labels import label
from apps.evaluations.statistics.variance import Variance
from basics.texts import number_told
from web.requests import TenantRequest, allowed

_PARTS = (
    ("rows", gettext_noop("Between questions"), gettext_noop("Some questions are harder than others.")),
    ("generator", gettext_noop("Between answers"), gettext_noop("The same question, asked again.")),
    ("judge", gettext_noop("Between judgements"), gettext_noop("The same answer, judged again.")),
)


@require_GET
@allowed("evaluation.read")
def repeats(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show how an arm's scores vary by ``?score=``, and its flaky rows."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    found = arm_repeats(actor=request.actor, arm=arm, score=request.GET.get("score", ""))
    rows = [one.row for one in found.flaky]
    questions = selectors.arm_questions(actor=request.actor, arm=arm, rows=rows)
    context = {
        "arm": arm,
        "found": found,
        "names": [(name, label(name)) for name in found.names],
        "name": label(found.score),
        "parts": _parts(found.variance),
        "pass_all": None if found.pass_all is None else round(found.pass_all * 100),
        "means": [number_told(mean, 2) for mean in found.means],
        "flaky": [(one, questions.get(one.row, "")) for one in found.flaky],
        "bar": PASS,
    }
    return render(request, "evaluations/repeats.html", context)


def _parts(variance: Variance) -> Sequence[tuple[str, str, float | None, int]]:
    """Return each source of variance: its name, what it is, its standard deviation, and its share in percent."""
    values = [getattr(variance, name) for name, *_texts in _PARTS]
    total = sum(value or 0.0 for value in values)
    return [
        (
            _(title),
            _(told),
            None if value is None else math.sqrt(value),
            round(100 * (value or 0.0) / total) if total else 0,
        )
        for (_part, title, told), value in zip(_PARTS, values, strict=True)
    ]
