"""What people are told of experiments that have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.evaluations.models import Experiment, ExperimentState
from notices.sources import Thing, notice_source
from tenancy.actors import Actor
from tenancy.models import Tenant


@notice_source(
    "experiment",
    group="work",
    texts={
        ExperimentState.COMPLETED: gettext_lazy("Experiment finished"),
        ExperimentState.PAUSED: gettext_lazy("Experiment paused"),
    },
)
def experiments(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return experiments by their name."""
    if not actor.can("evaluation.read"):
        return {}
    rows = Experiment.objects.visible_to(actor).filter(pk__in=pks).only("pk", "name")
    return {
        row.pk: Thing(row.name, reverse("evaluations:detail", args=[tenant.slug, row.pk])) for row in rows
    }
