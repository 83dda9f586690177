"""Experiments whose models are asked by batch: what may be asked so, who is woken to send it, and what a halt takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import BooleanField, Exists, F, Func, OuterRef

from apps.conversations.assistants.selectors import version_options
from apps.conversations.models import AssistantHelper, AssistantVersion
from apps.conversations.transcript.selectors import model_default, model_list
from apps.evaluations.arms.targets import AssistantTarget, ModelTarget, Target
from apps.evaluations.judges.scoring import is_lexical, judge_models
from apps.evaluations.models import Experiment, ExperimentState, Trial, TrialState
from basics.errors import Invalid
from basics.texts import gettext as _
from batches.engines import batches_require
from batches.models import BatchLine, LineState
from batches.services import batches_end
from jobs.services import job_enqueue, job_hasten
from notices.services import notice_put
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from toolloop.storable import text_storable

CARRY_JOB = "evaluations.carry"


def models_of(
    *, tenant: Tenant, actor: Actor, targets: Sequence[Target], specs: Sequence[Mapping[str, Any]]
) -> set[str]:
    """Return the models that answer or judge, with their routing prefixes."""
    found = {model for model in judge_models(specs) if not is_lexical(model)}
    versions = _versions(actor, targets)
    for target in targets:
        if isinstance(target, ModelTarget):
            found.add(target.model)
        elif isinstance(target, AssistantTarget):
            version = versions.get(target.version)
            own = "" if version is None else version.model
            found.add(target.model or own or model_default(model_list(tenant)))
    return found


def delivery_check(
    *, tenant: Tenant, actor: Actor, targets: Sequence[Target], specs: Sequence[Mapping[str, Any]]
) -> None:
    """Raise Invalid, in words for people, unless all that is asked of models can go by batch."""
    models = models_of(tenant=tenant, actor=actor, targets=targets, specs=specs)
    if not models:
        raise _refused(_("Nothing here uses a language model, so half price isn't available. Choose “now”."))
    try:
        batches_require(tenant, models)
    except Invalid as error:
        raise _refused(error.message) from error
    versions = _versions(actor, targets)
    for target in targets:
        options: dict[str, Any] = dict(getattr(target, "service", {}))
        version = versions.get(getattr(target, "version", None))
        if version is not None:
            options = {**version_options(version).model_options, **options}
        if options.get("background") or options.get("service_tier") not in (None, "", "standard"):
            raise _refused(
                _(
                    "Batches have their own price and speed. Leave out service tier and background, or run it "
                    "now."
                )
            )
    asking = AssistantHelper.objects.filter(tenant=tenant, version__in=list(versions.values()))
    if asking.exists():
        raise _refused(
            _(
                "An assistant that asks other assistants can't wait a day for each of them. Choose another "
                "one, or run it now."
            )
        )


def carrier_wake(experiment: Experiment) -> None:
    """Have what the experiment asks sent, in the current transaction; its lock is held."""
    who: dict[str, Any] = {"tenant": experiment.tenant, "kind": CARRY_JOB, "dedupe_key": experiment.topic}
    job_hasten(**who)
    job_enqueue(
        **who,
        actor=system_actor(experiment.tenant_id, experiment.created_by_id),
        payload={"experiment_id": experiment.pk},
        topic=experiment.topic,
    )


def trials_back(experiment: Experiment) -> None:
    """Let the trials go on whose answers are there, or have been given up; the experiment's lock is held."""
    is_theirs = Func(
        F("key"),
        OuterRef("waits_for"),
        template="(%(expressions)s))",
        arg_joiner=" = ANY(",
        output_field=BooleanField(),
    )
    waiting = BatchLine.objects.filter(
        is_theirs,
        tenant_id=experiment.tenant_id,
        owner=experiment.topic,
        state__in=(LineState.WANTED, LineState.SENT),
    )
    away = Trial.objects.filter(experiment=experiment, state=TrialState.AWAY)
    away.filter(~Exists(waiting)).update(state=TrialState.PENDING, waits_for=[])


def experiment_note(experiment: Experiment) -> None:
    """Tell who started an experiment that it has ended, or waits for them."""
    notice_put(
        tenant_id=experiment.tenant_id,
        people=[experiment.created_by_id],
        kind="experiment",
        pk=experiment.pk,
        state=experiment.state,
    )


def experiment_halt(experiment: Experiment, reason: str) -> None:
    """Pause a running experiment, in the current transaction; its lock is held.

    What is with a provider is cancelled; what had been answered by then is kept, and goes on with the experiment.
    """
    if experiment.state != ExperimentState.RUNNING:
        return
    experiment.state, experiment.reason = ExperimentState.PAUSED, text_storable(reason)
    experiment.save(update_fields=["state", "reason"])
    experiment_note(experiment)
    if experiment.is_batched:
        trials_recall(experiment, TrialState.PENDING)


def trials_recall(experiment: Experiment, state: TrialState) -> None:
    """Take what is away back into a state, and have the provider told; the experiment's lock is held."""
    away = Trial.objects.filter(experiment=experiment, state=TrialState.AWAY)
    away.update(state=state, waits_for=[])
    batches_finish(experiment, ends=False)


def batches_finish(experiment: Experiment, *, ends: bool) -> None:
    """Leave nothing of an experiment with its providers, in the current transaction; see ``batches_end``."""
    batches_end(
        tenant=experiment.tenant,
        actor=system_actor(experiment.tenant_id, experiment.created_by_id),
        owner=experiment.topic,
        ends=ends,
    )


def _versions(actor: Actor, targets: Sequence[Target]) -> dict[int | None, AssistantVersion]:
    named = (getattr(target, "version", None) for target in targets)
    asked = {int(pk) for pk in named if pk is not None}
    return {row.pk: row for row in AssistantVersion.objects.visible_to(actor).filter(pk__in=asked)}


def _refused(message: str) -> Invalid:
    return Invalid("experiment_invalid", message, data={"fields": {"delivery": [message]}})
