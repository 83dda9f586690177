"""What the side bar says of experiments that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.evaluations.models import Experiment, ExperimentState
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.finished import Work, finished_source


@finished_source(
    "experiment",
    texts={
        ExperimentState.COMPLETED: gettext_lazy("Experiment finished"),
        ExperimentState.PAUSED: gettext_lazy("Experiment paused"),
    },
    view="evaluations:detail",
)
def experiments(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Work]:
    """Return experiments by their name."""
    if not actor.can("evaluation.read"):
        return {}
    rows = Experiment.objects.visible_to(actor).filter(pk__in=pks).only("pk", "name")
    return {row.pk: Work(row.name, reverse("evaluations:detail", args=[tenant.slug, row.pk])) for row in rows}
