"""Who an experiment acts for, with the rights of this moment."""

from __future__ import annotations

from apps.evaluations.models import Experiment
from runs.actors import actor_now
from runs.models import Run
from tenancy.actors import Actor, system_actor


def experiment_actor(experiment: Experiment) -> Actor:
    """Return the actor; see ``runs.actors.actor_now``. Raises Denied when that person or key is gone."""
    if experiment.actor.get("kind") == "system":
        return system_actor(experiment.tenant_id, experiment.created_by_id)
    return actor_now(
        Run(
            tenant_id=experiment.tenant_id,
            user_id=experiment.created_by_id,
            request={"actor": experiment.actor},
        )
    )
