"""One question outside of a conversation: the answer is checked, the bill is kept, and it can be ended."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from basics.errors import Conflict, Invalid
from jobs.context import JobCancelled
from runs import remote_models
from runs.models import Run, UsageRecord
from runs.providers import provider_for
from runs.services import COMPLETION_LIMITS, Completion, CompletionFailed, completion_run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.fake_provider import FakeProvider, running
from tests.patience import PATIENCE_S
from toolloop.errors import ProviderUnavailable
from toolloop.limits import Limits
from toolloop.providers.scripted import ScriptedProvider, fails, says
from toolloop.tokens import Usage

pytestmark = pytest.mark.django_db

MODEL = "compatible/fake-json"
FAST = Limits(max_steps=1, max_tool_calls=0, max_seconds=20, max_retries=1, retry_min_s=0.01)


class Verdict(BaseModel):
    score: int
    why: str


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """A model server that speaks the wire of OpenAI."""
    remote_models._known.clear()
    with running() as (url, fake):
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", url)
        monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", "fake-json,fake-words4-gap500")
        yield fake


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, server: FakeProvider) -> Any:
    """Let a script stand in for the adapter."""

    def use(*turns: Any) -> ScriptedProvider:
        script = ScriptedProvider(list(turns))

        def make(tenant: Any, model: str) -> Any:
            provider = provider_for(tenant, model)
            provider.adapter = script
            return provider

        monkeypatch.setattr("runs.services.completions.provider_for", make)
        return script

    return use


def ask(cast: Cast, model: str = MODEL, **more: Any) -> Completion:
    with tenant_scope(cast.tenant.pk):
        return completion_run(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            model=model,
            **{"system": "You judge.", "prompt": "Well?", "purpose": "rerank", **more},
        )


def records(cast: Cast) -> list[UsageRecord]:
    with tenant_scope(cast.tenant.pk):
        return list(UsageRecord.objects.order_by("pk"))


def test_value_is_checked_and_usage_recorded_when_a_server_answers(cast: Cast, server: FakeProvider) -> None:
    server.replies["fake-json"] = lambda body: '```json\n{"score": 3, "why": "because"}\n```'
    answer = ask(cast, output=Verdict, attribution={"document": 5})

    assert answer.value == Verdict(score=3, why="because")
    assert answer.usage.input_total == 100
    (row,) = records(cast)
    assert (row.kind, row.input_tokens, row.output_tokens) == ("rerank", 100, 20)
    assert (row.run_id, row.step, row.user_id) == (None, None, cast.user("member").pk)
    assert row.attribution == {"document": 5, "purpose": "rerank", "api_key_id": None}
    (asked,) = server.log
    assert [m["role"] for m in asked["messages"]] == ["system", "user"]
    with tenant_scope(cast.tenant.pk):
        assert not Run.objects.exists()


def test_answer_is_text_when_no_form_is_asked_for(cast: Cast, server: FakeProvider) -> None:
    server.replies["fake-json"] = lambda body: "Plain words."
    answer = ask(cast)
    assert (answer.text, answer.value) == ("Plain words.", None)


def test_every_request_is_paid_when_the_first_answer_must_be_repaired(cast: Cast, scripted: Any) -> None:
    scripted(says("no"), says(json.dumps({"score": "much"})), says('{"score": 1, "why": "ok"}'))
    assert ask(cast, output=Verdict).value.score == 1
    assert [row.kind for row in records(cast)] == ["rerank"] * 3


def test_failure_says_why_and_is_paid_when_no_answer_fits(cast: Cast, scripted: Any) -> None:
    scripted(*[says("never")] * 3)
    with pytest.raises(CompletionFailed, match="does not have the form") as caught:
        ask(cast, output=Verdict)
    assert (caught.value.code, caught.value.is_retryable) == ("invalid_output", True)
    assert len(records(cast)) == 3


def test_lost_request_is_recorded_as_lost(cast: Cast, scripted: Any) -> None:
    lost = ProviderUnavailable("cut", retry_after_s=0.01)
    lost.usage = Usage(90, 0, 0, 3, 0, 1)
    scripted(fails(lost), says("fine"))
    assert ask(cast, limits=FAST).text == "fine"
    assert [(r.kind, r.input_tokens) for r in records(cast)] == [("lost", 90), ("rerank", 10)]


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (500, True), (429, True)])
def test_failure_tells_whether_to_try_again_when_the_server_refuses(
    cast: Cast, server: FakeProvider, status: int, retryable: bool
) -> None:
    server.replies["fake-json"] = lambda body: status
    with pytest.raises(CompletionFailed) as caught:
        ask(cast, limits=FAST)
    assert caught.value.is_retryable is retryable
    assert len(server.log) == (2 if retryable else 1)
    assert records(cast) == []


def test_failure_is_had_when_nobody_listens(
    cast: Cast, server: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(CompletionFailed) as caught:
        ask(cast, limits=FAST)
    assert caught.value.is_retryable


def test_empty_answer_is_a_failure_when_the_model_refuses(cast: Cast, scripted: Any) -> None:
    scripted(says("", stop="refusal"))
    with pytest.raises(CompletionFailed, match="refusal") as caught:
        ask(cast)
    assert caught.value.code == "no_answer"


def test_request_ends_at_once_when_the_job_is_cancelled(cast: Cast, server: FakeProvider) -> None:
    cancelled = threading.Event()
    threading.Timer(0.4, cancelled.set).start()

    def check() -> None:
        if cancelled.is_set():
            raise JobCancelled("job 1 was cancelled")

    with pytest.raises(JobCancelled):
        ask(cast, "compatible/fake-words40-gap500", check=check)
    until = time.monotonic() + PATIENCE_S
    while not server.log[0]["closed_early"]:
        assert time.monotonic() < until, "the provider's stream stayed open"
        time.sleep(0.02)


def test_limit_of_time_is_kept(cast: Cast, server: FakeProvider) -> None:
    limits = Limits(max_steps=1, max_seconds=0.5, final_seconds=0.5)
    with pytest.raises(CompletionFailed) as caught:
        ask(cast, "compatible/fake-words90-gap500", limits=limits)
    assert caught.value.code == "deadline"


def test_models_that_cannot_be_asked_are_refused(cast: Cast, server: FakeProvider) -> None:
    with pytest.raises(Invalid):
        ask(cast, "nobody/nothing")
    with pytest.raises(Invalid, match="can't generate text"):
        ask(cast, "extractive")
    with pytest.raises(Conflict, match="no key"):
        ask(cast, "anthropic/claude-sonnet-4-5")
    with pytest.raises(ValueError, match="purpose"):
        ask(cast, purpose="")
    assert COMPLETION_LIMITS.max_steps == 1
