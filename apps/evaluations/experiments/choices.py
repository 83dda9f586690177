"""What an experiment can ask and how it is scored: the chosen targets and scorers, checked for who chose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.collections.models import Collection
from apps.conversations.models import AssistantVersion
from apps.evaluations.arms.targets import (
    AssistantTarget,
    ModelTarget,
    Target,
    target_read,
)
from apps.evaluations.judges.scoring import LEXICAL, judge_options, judge_rubric
from apps.evaluations.scorers.registry import JUDGES, rule_scorer
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from runs.providers import models_available, service_problem
from tenancy.actors import Actor
from tenancy.models import Tenant


def target_checked(tenant: Tenant, actor: Actor, values: Mapping[str, Any]) -> Target:
    """Return a target whose parts the actor may use. Raises Invalid or Missing."""
    target = target_read(values)
    collections = getattr(target, "collections", None)
    if collections:
        known = Collection.objects.visible_to(actor).filter(pk__in=collections).count()
        if known != len(set(collections)):
            raise Missing("collection")
    if isinstance(target, AssistantTarget) and target.version is not None:
        versions = AssistantVersion.objects.visible_to(actor).filter(pk=target.version)
        if not versions.exists():
            raise Missing("assistant version")
    if isinstance(target, ModelTarget | AssistantTarget) and (model := target.model):
        _model_checked(tenant, model)
        if problem := service_problem(tenant, model, target.service):
            raise Invalid("target_invalid", problem, data={"fields": {"arms": [problem]}})
    return target


def scorer_checked(tenant: Tenant, actor: Actor, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scorer's specification as it is kept: every option, and the rubric's version by number. Raises Invalid."""
    kind, options = str(spec.get("kind", "")), spec.get("options") or {}
    if not isinstance(options, Mapping):
        raise Invalid(
            "scorer_invalid", _("The options of scorer “%(kind)s” must be an object.") % {"kind": kind}
        )
    if kind not in JUDGES:
        return {"kind": kind, "options": rule_scorer(kind, options).model_dump(mode="json")}
    chosen = judge_options(kind, options)
    for model in chosen.models:
        if model != LEXICAL:
            _model_checked(tenant, model)
    kept = chosen.model_dump(mode="json")
    version = judge_rubric(actor=actor, kind=kind, chosen=chosen)
    if version is not None:
        kept["number"] = version.number
    return {"kind": kind, "options": kept}


def _model_checked(tenant: Tenant, model: str) -> None:
    if model not in {info.id for info in models_available(tenant)}:
        raise Invalid(
            "unknown_model",
            _("The model “%(model)s” is not available here. Choose one from the list.") % {"model": model},
            data={"fields": {"arms": [_("%(model)s is not available.") % {"model": model}]}},
        )
