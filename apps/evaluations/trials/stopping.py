"""Stop the arms of an experiment that another one is shown to beat."""

from __future__ import annotations

from django.utils import timezone

from apps.evaluations.compare.dominance import dominated, look_number
from apps.evaluations.models import Arm, Experiment, Trial, TrialState
from apps.evaluations.results.selectors import arm_scores_counted
from basics.texts import ngettext
from tenancy.actors import system_actor
from tenancy.services import audit_record


def arms_stop(experiment: Experiment) -> list[Arm]:
    """Skip what waits of arms that another one beats at no higher cost; the experiment's lock is held.

    Reads every score of the arms, and is therefore called after twice as many trials as the last time.
    """
    arms = {arm.pk: arm for arm in experiment.arms.all()}
    scores = {pk: arm_scores_counted(arm) for pk, arm in arms.items() if arm.stopped_at is None}
    look = look_number(experiment.next_look, len(arms))
    stopped = []
    for one in dominated(scores, look=look, arms=len(arms)):
        arm = arms[one.loser]
        arm.stopped_at = timezone.now()
        arm.stop_reason = ngettext(
            "Stopped early: “%(better)s” answers better at no higher cost (%(change)s over %(n)s row).",
            "Stopped early: “%(better)s” answers better at no higher cost (%(change)s over %(n)s rows).",
            one.rows,
        ) % {"better": arms[one.winner].name, "change": f"{one.change:+.2f}", "n": one.rows}
        arm.save(update_fields=["stopped_at", "stop_reason"])
        waiting = Trial.objects.filter(arm=arm, state=TrialState.PENDING)
        audit_record(
            tenant=experiment.tenant,
            actor=system_actor(experiment.tenant_id, experiment.created_by_id),
            action="experiment.arm_stop",
            object=experiment,
            data={"arm": arm.pk, "better": one.winner, "skipped": waiting.update(state=TrialState.SKIPPED)},
        )
        stopped.append(arm)
    return stopped
