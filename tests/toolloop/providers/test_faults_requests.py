"""The table of faults, first half: requests that are refused or never answered. Every provider, through the loop."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tests.patience import PATIENCE_S
from tests.toolloop.providers.faults import FAST, Answer, good, refused, run, spent
from tests.toolloop.providers.test_lifecycle import Server, answering, connect, running
from tests.toolloop.providers.wires import ANTHROPIC, COMPATIBLE, GOOGLE, KEY, OPENAI, WIRES, XAI, Wire
from toolloop.fallback import FallbackProvider
from toolloop.limits import Limits
from toolloop.tokens import Usage

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)

# --- what may pass is asked again, once -----------------------------------------------------------------------------

PASSES = [
    (429, "rate_limit_error"),
    (500, "api_error"),
    (502, "api_error"),
    (503, "overloaded_error"),
    (529, "overloaded_error"),
    (408, "timeout_error"),
]


@every_wire
@pytest.mark.parametrize(("status", "word"), PASSES, ids=str)
async def test_run_is_answered_by_the_second_request_when_the_first_is_refused_for_now(
    wire: Wire, status: int, word: str
) -> None:
    outcome = await run(wire, refused(wire, status, word), good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert len(outcome.bodies) == 2, "neither the SDK nor the adapter may retry by itself"
    assert outcome.bodies[0] == outcome.bodies[1]
    assert outcome.resets == [], "nothing was visible"
    assert outcome.end.usage == spent(wire)


@every_wire
async def test_wait_is_as_long_as_the_provider_asks(wire: Wire) -> None:
    answers = (refused(wire, 429, "rate_limit_error", **{"retry-after": "0.3"}), good(wire))
    outcome = await run(wire, *answers, limits=Limits(retry_min_s=5.0))
    assert outcome.end.status == "completed"
    waited = outcome.times[1] - outcome.times[0]
    assert 0.3 <= waited < 2.0


@every_wire
async def test_wait_is_ours_and_grows_when_the_provider_names_none(wire: Wire) -> None:
    answers = [refused(wire, 429, "rate_limit_error") for _ in range(2)]
    limits = Limits(retry_min_s=0.2, retry_max_s=0.4)
    outcome = await run(wire, *answers, good(wire), limits=limits)
    assert outcome.end.status == "completed"
    first, second = (b - a for a, b in zip(outcome.times, outcome.times[1:], strict=False))
    assert 0.1 <= first < 1.0  # half to all of 0.2 s
    assert 0.2 <= second < 1.5  # half to all of 0.4 s


@every_wire
@pytest.mark.parametrize("seconds", ["60", "86400"])
async def test_run_fails_at_once_when_the_wait_would_pass_its_deadline(wire: Wire, seconds: str) -> None:
    limits = Limits(max_seconds=20)
    refusal = refused(wire, 429, "rate_limit_error", "slow down", **{"retry-after": seconds})
    outcome = await run(wire, refusal, limits=limits)
    # Had it waited, the deadline would have ended it.
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "rate_limited")
    assert outcome.end.retryable
    assert len(outcome.bodies) == 1


@every_wire
async def test_run_fails_when_its_retries_are_used_up(wire: Wire) -> None:
    answers = [refused(wire, 500, "api_error", f"attempt {n}") for n in range(3)]
    limits = Limits(max_retries=2, retry_min_s=0.01, retry_max_s=0.02)
    outcome = await run(wire, *answers, limits=limits)
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "provider_unavailable")
    assert "attempt 2" in outcome.end.error_message
    assert len(outcome.bodies) == 3
    assert outcome.end.usage == Usage()


# --- what does not pass is not asked again -----------------------------------------------------------------------------

STAYS = [
    (400, "invalid_request_error", "bad tool schema", "bad_request"),
    (400, "invalid_request_error", "prompt is too long: 9 > 8", "context_too_long"),
    (401, "authentication_error", f"Incorrect API key {KEY}", "auth_failed"),
    (402, "billing_error", "pay first", "quota_exhausted"),
    (403, "permission_error", "not for you", "auth_failed"),
    (404, "not_found_error", "no such model", "bad_request"),
    (413, "request_too_large", "too large", "context_too_long"),
    (429, "insufficient_quota", "no money left", "quota_exhausted"),
]


@every_wire
@pytest.mark.parametrize(("status", "word", "message", "code"), STAYS, ids=lambda v: str(v)[:18])
async def test_run_fails_after_one_request_when_asking_again_cannot_help(
    wire: Wire, status: int, word: str, message: str, code: str
) -> None:
    refusal = refused(wire, status, word, message, **{"retry-after": "0"})
    outcome = await run(wire, refusal, limits=FAST)
    assert (outcome.end.status, outcome.end.error_code) == ("failed", code)
    assert not outcome.end.retryable
    assert len(outcome.bodies) == 1
    assert KEY not in outcome.end.error_message
    assert outcome.end.usage == Usage()


BLOCKED: list[tuple[Wire, Answer]] = [
    (OPENAI, refused(OPENAI, 400, "content_policy_violation", "flagged")),
    (XAI, refused(XAI, 400, "content_filter", "flagged")),
    (COMPATIBLE, refused(COMPATIBLE, 400, "content_filter", "flagged")),
]


@pytest.mark.parametrize(("wire", "answer"), BLOCKED, ids=str)
async def test_run_fails_for_good_when_the_prompt_is_blocked_by_a_status(wire: Wire, answer: Answer) -> None:
    outcome = await run(wire, answer)
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "content_refused")
    assert len(outcome.bodies) == 1


# --- what is never answered ------------------------------------------------------------------------------------------

FAILURES = [
    httpx2.ConnectError("refused"),
    httpx2.ConnectTimeout("nobody there"),
    httpx2.ReadTimeout("slow"),
    httpx2.WriteTimeout("slow"),
    httpx2.PoolTimeout("full"),
    httpx2.RemoteProtocolError("server disconnected without sending a response"),
]


@every_wire
@pytest.mark.parametrize("failure", FAILURES, ids=lambda f: type(f).__name__)
async def test_run_is_answered_by_the_second_request_when_the_first_gets_no_answer(
    wire: Wire, failure: Exception
) -> None:
    outcome = await run(wire, failure, good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert len(outcome.bodies) == 2
    assert outcome.resets == []
    assert outcome.end.usage == spent(wire)


@every_wire
async def test_run_ends_at_its_deadline_when_no_answer_begins(wire: Wire) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S):
        outcome = await run(wire, never, never, limits=Limits(max_seconds=0.3, final_seconds=0.3))
    assert (outcome.end.status, outcome.end.error_code) == ("failed", "deadline")
    assert outcome.end.limit == "max_seconds"
    # The second is the final answer that every limit allows.
    assert len(outcome.bodies) == 2


@every_wire
async def test_run_is_answered_when_the_server_comes_back(wire: Wire) -> None:
    """Over real sockets: nobody listens at first."""
    async with running(Server(answering(wire))) as server:
        provider = connect(wire, server)
        outcome = await run(wire, provider=provider)
        assert (outcome.end.status, outcome.end.text) == ("completed", "onetwo")
        assert server.requests == 1
    again = await run(wire, provider=connect(wire, server), limits=FAST)
    assert (again.end.status, again.end.retryable) == ("failed", True)
    assert again.end.error_code == "provider_unavailable"


# --- bodies that are none ----------------------------------------------------------------------------------------------


@every_wire
@pytest.mark.parametrize(
    "body",
    [
        httpx2.Response(200, json={"hello": "world"}),
        httpx2.Response(200, headers={"content-type": "application/json"}, content=b'{"half": '),
        httpx2.Response(200, text="<html>Sign in</html>"),
        httpx2.Response(200, content=b""),
        httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=b"data: {x\n\n"),
    ],
    ids=["other-json", "half-json", "html", "nothing", "broken-event"],
)
async def test_run_is_answered_by_the_second_request_when_the_first_body_is_no_answer(
    wire: Wire, body: httpx2.Response
) -> None:
    outcome = await run(wire, body, good(wire))
    assert (outcome.end.status, outcome.end.text) == ("completed", "All is well.")
    assert len(outcome.bodies) == 2
    assert outcome.end.usage == spent(wire)


# --- another model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC, GOOGLE], ids=str)
async def test_next_model_answers_at_once_when_the_first_is_overloaded(wire: Wire) -> None:
    other = COMPATIBLE
    requests: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        requests.append(request.url.path)
        if request.url.path == wire.path:
            return httpx2.Response(529, json=wire.error_body(529, "overloaded_error", "busy"))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=good(other))

    chain = FallbackProvider([(wire.provider(handler), wire.model), (other.provider(handler), other.model)])
    outcome = await run(wire, provider=chain)
    assert outcome.end.text == "All is well."
    assert requests == [wire.path, other.path]
    assert outcome.end.usage == spent(other)
