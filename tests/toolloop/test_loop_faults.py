"""What goes wrong at the provider: what is asked again, what is not, and what the user keeps."""

from __future__ import annotations

import time

import pytest

from tests.toolloop.helpers import Recorder, add, converse
from toolloop.errors import (
    AuthFailed,
    BadRequest,
    ContentRefused,
    ContextTooLong,
    MalformedResponse,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
)
from toolloop.events import StepReset, TextDelta
from toolloop.limits import Limits
from toolloop.providers.scripted import ScriptedProvider, call, calls, fails, says
from toolloop.tokens import Usage

FAST = Limits(retry_min_s=0.01, retry_max_s=0.02)


@pytest.mark.parametrize("kind", [RateLimited, ProviderUnavailable, MalformedResponse])
async def test_call_is_made_again_when_the_error_may_pass(kind):
    journal = Recorder()
    dialogue = await converse([fails(kind("try later")), says("Here I am.")], limits=FAST, journal=journal)
    assert dialogue.end.text == "Here I am."
    assert not dialogue.of(StepReset)
    assert journal.log == ["turn 0 started", "turn 0 finished"]
    assert dialogue.end.usage.requests == 1


async def test_step_is_reset_before_the_retry_when_text_was_visible():
    dialogue = await converse(
        [fails(ProviderUnavailable("cut"), after="Half an"), says("A whole answer.")], limits=FAST
    )
    assert [type(e) for e in dialogue.events[:3]] == [TextDelta, StepReset, TextDelta]
    assert dialogue.of(StepReset)[0].reason == "provider_unavailable"
    assert dialogue.end.text == "A whole answer."


async def test_partial_text_is_kept_when_retries_are_used_up():
    script = [fails(ProviderUnavailable(f"cut {i}"), after=f"try {i}") for i in range(3)]
    limits = Limits(max_retries=2, retry_min_s=0.01)
    dialogue = await converse(script, limits=limits)
    assert dialogue.end.status == "failed"
    assert (dialogue.end.error_code, dialogue.end.retryable) == ("provider_unavailable", True)
    assert dialogue.end.error_message == "cut 2"
    assert dialogue.end.text == "try 2"
    assert len(dialogue.provider.requests) == 3


@pytest.mark.parametrize("kind", [QuotaExhausted, BadRequest, AuthFailed, ContextTooLong, ContentRefused])
async def test_call_is_not_made_again_when_waiting_does_not_help(kind):
    dialogue = await converse([fails(kind("no")), says("never")], limits=FAST)
    assert dialogue.end.status == "failed"
    assert dialogue.end.error_code == kind.code
    assert not dialogue.end.retryable
    assert len(dialogue.provider.requests) == 1


async def test_retry_waits_as_long_as_the_provider_asks():
    started = time.monotonic()
    dialogue = await converse([fails(RateLimited("slow down", retry_after_s=0.2)), says("ok")], limits=FAST)
    assert dialogue.end.status == "completed"
    assert time.monotonic() - started >= 0.2


async def test_run_fails_at_once_when_the_wait_would_pass_the_deadline():
    dialogue = await converse(
        [fails(RateLimited("slow down", retry_after_s=4_294_967)), says("never")],
        limits=Limits(max_seconds=5),
    )
    # Had it waited for its deadline, it would have ended for that.
    assert (dialogue.end.status, dialogue.end.retryable) == ("failed", True)
    assert dialogue.end.error_code == "rate_limited"


async def test_stream_without_a_turn_counts_as_cut():
    class Short(ScriptedProvider):
        async def stream(self, request):
            self.requests.append(request)
            if len(self.requests) == 1:
                yield TextDelta("He")
                return
            async for event in ScriptedProvider([says("Hello.")]).stream(request):
                yield event

    dialogue = await converse(Short([]), limits=FAST)
    assert dialogue.end.text == "Hello."
    assert len(dialogue.of(StepReset)) == 1


async def test_unusable_turn_is_asked_again_and_its_tokens_count():
    usage = Usage(7, 0, 0, 3, 0, 1)
    dialogue = await converse(
        [says("garb", stop="error", usage=usage), says("Clean.", usage=usage)], limits=FAST
    )
    assert dialogue.end.text == "Clean."
    assert dialogue.end.usage == Usage(14, 0, 0, 6, 0, 2)


async def test_run_fails_and_says_little_when_an_adapter_breaks_its_contract():
    class Buggy(ScriptedProvider):
        async def stream(self, request):
            if request.model:
                raise KeyError("sk-secret")
            yield TextDelta("never")

    dialogue = await converse(Buggy([]))
    assert (dialogue.end.status, dialogue.end.error_code) == ("failed", "internal_error")
    assert "KeyError" in dialogue.end.error_message
    assert "secret" not in dialogue.end.error_message


async def test_run_fails_with_the_reason_when_the_script_is_not_met():
    dialogue = await converse([says("Hi", expect="Goodbye")])
    assert dialogue.end.error_code == "configuration"
    assert "Goodbye" in dialogue.end.error_message


async def test_failed_run_keeps_what_earlier_steps_used():
    dialogue = await converse([calls(call("add", a=1, b=1)), fails(BadRequest("no"))], add)
    assert dialogue.end.usage == Usage(10, 0, 0, 5, 0, 1)
    assert dialogue.end.step == 1


async def test_what_the_journal_raises_reaches_the_caller_and_tools_are_cancelled():
    class Full(Recorder):
        async def call_finished(self, step, call, result, duration_s):
            raise OSError("disk full")

    provider = ScriptedProvider([calls(call("add", a=1, b=1), call("add", a=2, b=1))])
    with pytest.raises(OSError, match="disk full"):
        await converse(provider, add, journal=Full())
    assert provider.open_streams == 0
