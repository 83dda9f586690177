"""About which answers judges disagree, with each other or inside of a jury. Reads only."""

from __future__ import annotations

from django.db.models import Max, Min

from apps.evaluations.models import (
    Experiment,
    Score,
    ScoreAuthor,
)
from tenancy.actors import Actor


def disputes(*, actor: Actor, experiment: Experiment) -> dict[int, float]:
    """Return the trials about which judges disagree, with how far at most, 0 to 1: between judges, or inside of a jury."""
    actor.require("evaluation.read")
    judged = Score.objects.visible_to(actor).filter(
        trial__experiment=experiment, author_kind=ScoreAuthor.JUDGE
    )
    spread = (
        judged.filter(value__isnull=False)
        .values("trial_id", "name")
        .annotate(gap=Max("value") - Min("value"))
    )
    gaps: dict[int, float] = {}
    for trial, gap in spread.filter(gap__gt=0).values_list("trial_id", "gap"):
        gaps[trial] = max(gap, gaps.get(trial, 0.0))
    juries = judged.filter(details__needs_person=True)
    for trial, votes in juries.values_list("trial_id", "details__votes"):
        read = [vote for vote in votes if vote is not None]
        gaps[trial] = max(max(read) - min(read), gaps.get(trial, 0.0))
    return gaps
