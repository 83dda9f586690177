"""How the models of an experiment are served is part of an arm: checked when it begins, and passed on to every request."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.evaluations.arms.targets import ReferenceTarget, RetrieverTarget, target_read, target_told
from apps.evaluations.experiments.forms import ExperimentForm
from apps.evaluations.models import Arm, Trial
from apps.evaluations.trials import tasks
from basics.errors import Invalid
from runs.services import Completion
from tenancy.scope import tenant_scope
from tests.evaluations.support import make_experiment, make_version, rows_of, work_off
from toolloop.tokens import Usage

SERVED = {"service_tier": "flex", "cache_ttl": "1h", "background": True}
MODEL = {"kind": "model", "model": "extractive"}
CHAT = {"kind": "assistant", "model": "extractive"}


def test_a_target_keeps_what_is_said_and_nothing_else():
    for base in (MODEL, CHAT):
        plain, told = target_read(base), target_read({**base, **SERVED})
        assert not isinstance(plain, RetrieverTarget | ReferenceTarget)
        assert not isinstance(told, RetrieverTarget | ReferenceTarget)
        assert plain.service == {}
        assert told.service == SERVED
        assert target_read(told.model_dump(mode="json")) == told
        assert target_told(told).endswith(", flex tier")
        assert "tier" not in target_told(plain)
    for wrong in ({"service_tier": "cheap"}, {"cache_ttl": "2h"}, {"background": "perhaps"}):
        with pytest.raises(Invalid, match=next(iter(wrong))):
            target_read({**MODEL, **wrong})
    with pytest.raises(Invalid):
        target_read({"kind": "retriever", "collections": [1], "service_tier": "flex"})


@pytest.mark.django_db
@pytest.mark.parametrize("base", [MODEL, CHAT], ids=["model", "assistant"])
def test_what_the_model_lacks_is_refused_before_the_first_row(cast, library, base):
    version = make_version(cast, rows_of(library))
    with pytest.raises(Invalid, match="no service tier “flex”") as refused:
        make_experiment(cast, version, {**base, "service_tier": "flex"})
    assert list(refused.value.data["fields"]) == ["arms"]
    with tenant_scope(cast.tenant.pk):
        assert not Arm.objects.exists()


@pytest.mark.django_db(transaction=True)
async def test_a_model_is_asked_with_it(cast, library, monkeypatch, lane_threads):
    asked: list[Any] = []

    def complete(**kwargs: Any) -> Completion:
        asked.append(kwargs["options"])
        return Completion(None, "2.5 percent.", Usage(), 0.01)

    monkeypatch.setattr(tasks, "completion_run", complete)
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    experiment = await sync_to_async(make_experiment)(cast, version, MODEL)
    await sync_to_async(_serve)(cast)
    await work_off(experiment, lane_threads)
    assert asked == [SERVED]


@pytest.mark.django_db(transaction=True)
async def test_an_assistant_is_asked_with_it(cast, library, found, lane_threads):
    """The extractive model has none of it, and says so: nothing on the way has dropped it."""
    version = await sync_to_async(make_version)(cast, rows_of(library)[:1])
    target = {**CHAT, "collections": [library.collection.pk]}
    experiment = await sync_to_async(make_experiment)(cast, version, target)
    await sync_to_async(_serve)(cast)
    await work_off(experiment, lane_threads)
    [trial] = await sync_to_async(_trials)(cast)
    assert "no service tier “flex”" in trial.error


def _serve(cast: Any) -> None:
    with tenant_scope(cast.tenant.pk):
        for arm in Arm.objects.all():
            arm.target = {**arm.target, **SERVED}
            arm.save()


def _trials(cast: Any) -> list[Trial]:
    with tenant_scope(cast.tenant.pk):
        return list(Trial.objects.all())


@pytest.mark.django_db
def test_the_form_has_it_for_every_arm_that_asks_a_model(cast, library):
    version = make_version(cast, rows_of(library))
    data = {
        "name": "Tiers",
        "version": version.pk,
        "models": ["extractive"],
        "scorers": ["token_f1"],
        "judges": ["lexical"],
        "repeats": 1,
        "service_tier": "flex",
        "cache_ttl": "1h",
        "background": "on",
    }
    with tenant_scope(cast.tenant.pk):
        for kind in ("model", "assistant"):
            form = ExperimentForm({**data, "kind": kind}, tenant=cast.tenant, actor=cast.actor("member"))
            assert form.is_valid(), form.errors
            [arm] = form.arms()
            assert {name: arm.target[name] for name in SERVED} == SERVED
        form = ExperimentForm(
            {**data, "kind": "model", "service_tier": "cheap"}, tenant=cast.tenant, actor=cast.actor("member")
        )
        assert "service_tier" in form.errors
