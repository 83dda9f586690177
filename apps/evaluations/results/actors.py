"""Who an experiment or a sampling rule acts for, with the rights of this moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.evaluations.models import Experiment
from runs.actors import actor_now
from runs.models import Run
from tenancy.actors import Actor, system_actor


def kept_actor(tenant_id: int, user_id: int | None, facts: Mapping[str, Any]) -> Actor:
    """Return the actor of facts as ``actor_facts`` gave them. Raises Denied when that person or key is gone."""
    if facts.get("kind") == "system":
        return system_actor(tenant_id, user_id)
    return actor_now(Run(tenant_id=tenant_id, user_id=user_id, request={"actor": dict(facts)}))


def experiment_actor(experiment: Experiment) -> Actor:
    """Return who an experiment acts for. Raises Denied when that person or key is gone."""
    return kept_actor(experiment.tenant_id, experiment.created_by_id, experiment.actor)
