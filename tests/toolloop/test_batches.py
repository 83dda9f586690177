"""Batches of each provider: real SDKs and real sockets, against a server that speaks the three protocols."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests import fake_provider
from tests.fake_provider import FakeProvider
from tests.toolloop.providers.wires import ANTHROPIC, GOOGLE, KEY, OPENAI, Wire
from toolloop.batches._answers import LineDecoder
from toolloop.batches.base import (
    MAX_KEY_CHARS,
    BatchGone,
    BatchLimits,
    BatchProvider,
    BatchUndecided,
    new_mark,
)
from toolloop.batches.registry import batches_of, missing_batches
from toolloop.errors import (
    BadRequest,
    ConfigurationError,
    MalformedResponse,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    UnsupportedFeature,
)
from toolloop.messages import Turn, UserMessage
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.profiles import profile_for
from toolloop.providers.registry import make_provider

WIRES = (OPENAI, ANTHROPIC, GOOGLE)
every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
# Where a line is known by its name, and where by a field.
NAMES = {"openai": "custom_id", "anthropic": "custom_id", "google": "key"}


@pytest.fixture
def server() -> Iterator[tuple[str, FakeProvider]]:
    with fake_provider.running() as running:
        yield running


@asynccontextmanager
async def opened(wire: Wire, base: str) -> AsyncIterator[BatchProvider]:
    url = base if wire is OPENAI else base.removesuffix("/v1")
    batches = batches_of(make_provider(wire.name, api_key=KEY, base_url=url))
    try:
        yield batches
    finally:
        await batches.aclose()


def lines_of(batches: BatchProvider, wire: Wire, *keys: str) -> list[bytes]:
    return [batches.line(key, wire.request(UserMessage(f"Question {key}?"))) for key in keys]


def now() -> datetime:
    return datetime.now(UTC)


async def read(batches: BatchProvider, handle: dict[str, Any]) -> dict[str, Turn | ProviderError]:
    return {key: answer async for key, answer in batches.results(handle)}


async def over(batches: BatchProvider, handle: dict[str, Any]) -> str:
    """Ask until the batch is over; the server ends it after so many questions."""
    for _ in range(20):
        standing = await batches.standing(handle)
        if standing.is_over:
            return standing.status
    raise AssertionError("the batch never ended")


# --- the whole way ---------------------------------------------------------------------------------------------------


@every_wire
async def test_answers_come_back_by_key_when_a_batch_has_ended(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    fake.batches.polls = 3
    async with opened(wire, base) as batches:
        handle = await batches.submit(
            lines_of(batches, wire, "a", "b-2", "c_3"), model=wire.model, mark=new_mark()
        )
        handle = json.loads(json.dumps(handle))
        assert KEY not in json.dumps(handle)
        seen = [await batches.standing(handle) for _ in range(3)]
        assert [s.status for s in seen] == ["running", "running", "ended"]
        assert (seen[-1].total, seen[-1].done, seen[-1].failed) == (3, 3, 0)

        answers = await read(batches, handle)
        assert set(answers) == {"a", "b-2", "c_3"}
        for key, turn in answers.items():
            assert isinstance(turn, Turn)
            assert turn.text == f"Answer to: Question {key}?"
            assert (turn.provider, turn.model, turn.stop) == (wire.name, wire.model, "end")
            assert (turn.usage.requests, turn.usage.input_total) == (1, 100)
            assert turn.service_tier == "batch"
        # Reading costs nothing and takes nothing away.
        assert await read(batches, handle) == answers


@every_wire
async def test_a_line_is_what_is_streamed_and_its_turn_what_the_stream_makes(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    said: list[dict[str, Any]] = [
        {"name": "search_documents", "arguments": {"query": "duty"}},
        {"name": "search_documents", "arguments": {}},
    ]
    fake.replies[wire.model] = lambda body: said
    request = wire.request(UserMessage("What is the duty?"), cache_key="c", user_key="u")
    async with opened(wire, base) as batches:
        handle = await batches.submit([batches.line("a", request)], model=wire.model, mark=new_mark())
        await over(batches, handle)
        batched = (await read(batches, handle))["a"]
    url = base if wire is OPENAI else base.removesuffix("/v1")
    provider = make_provider(wire.name, api_key=KEY, base_url=url)
    streamed = [event async for event in provider.stream(request)][-1].turn  # type: ignore[union-attr]
    await provider.aclose()

    assert isinstance(batched, Turn)
    assert [c.arguments for c in batched.tool_calls] == [{"query": "duty"}, {}]
    assert batched.stop == streamed.stop == "tools"
    assert batched.account == streamed.account
    assert batched.usage == streamed.usage


@every_wire
async def test_a_batch_costs_half(wire: Wire, server: tuple[str, FakeProvider]) -> None:
    base, _ = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a"), model=wire.model, mark=new_mark())
        await over(batches, handle)
        turn = (await read(batches, handle))["a"]
    assert isinstance(turn, Turn)
    profile = profile_for(wire.name, wire.model)
    whole, half = profile.cost_usd(turn.usage), profile.cost_usd(turn.usage, turn.service_tier)
    assert whole
    assert half == pytest.approx(whole / 2)


@every_wire
async def test_failed_lines_say_why_beside_answered_ones(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    statuses = {"Question bad?": 400, "Question busy?": 503}
    fake.replies[wire.model] = lambda body: statuses.get(body["messages"][-1]["content"])
    async with opened(wire, base) as batches:
        handle = await batches.submit(
            lines_of(batches, wire, "good", "bad", "busy"), model=wire.model, mark=new_mark()
        )
        standing = await batches.standing(handle)
        assert (standing.status, standing.done, standing.failed) == ("ended", 1, 2)
        answers = await read(batches, handle)
    assert isinstance(answers["good"], Turn)
    bad, busy = answers["bad"], answers["busy"]
    assert isinstance(bad, BadRequest)
    assert not bad.retryable
    assert isinstance(busy, ProviderUnavailable)
    assert busy.retryable
    assert "told to fail" in busy.message


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC], ids=str)
async def test_what_expired_can_be_tried_again(wire: Wire, server: tuple[str, FakeProvider]) -> None:
    base, fake = server
    fake.batches.outcome, fake.batches.unanswered = "expired", frozenset({"b"})
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a", "b"), model=wire.model, mark=new_mark())
        standing = await batches.standing(handle)
        assert (standing.status, standing.done, standing.failed) == ("expired", 1, 1)
        answers = await read(batches, handle)
    late = answers["b"]
    assert isinstance(answers["a"], Turn)
    assert isinstance(late, ProviderError)
    assert (late.code, late.retryable, late.usage) == ("batch_expired", True, None)


async def test_an_expired_batch_of_gemini_has_no_answers(server: tuple[str, FakeProvider]) -> None:
    base, fake = server
    fake.batches.outcome = "expired"
    async with opened(GOOGLE, base) as batches:
        handle = await batches.submit(lines_of(batches, GOOGLE, "a"), model=GOOGLE.model, mark=new_mark())
        standing = await batches.standing(handle)
        assert (standing.status, standing.total, standing.failed) == ("expired", 1, 1)
        assert await read(batches, handle) == {}


@every_wire
async def test_a_cancelled_batch_keeps_what_was_answered(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    fake.batches.polls, fake.batches.unanswered = 9, frozenset({"b"})
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a", "b"), model=wire.model, mark=new_mark())
        await batches.cancel(handle)
        assert await over(batches, handle) == "cancelled"
        await batches.cancel(handle)  # A batch that is over stays as it is.
        answers = await read(batches, handle)
    assert isinstance(answers["a"], Turn)
    left = answers.get("b")
    assert left is None if wire is GOOGLE else isinstance(left, ProviderError)
    if isinstance(left, ProviderError):
        assert (left.code, left.retryable) == ("batch_cancelled", True)


@pytest.mark.parametrize("wire", [OPENAI, GOOGLE], ids=str)
async def test_a_batch_that_is_refused_as_a_whole_says_why(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    fake.batches.outcome = "failed"
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a"), model=wire.model, mark=new_mark())
        standing = await batches.standing(handle)
        assert standing.status == "failed"
        assert standing.message == "Every line must name one model."
        assert await read(batches, handle) == {}


@every_wire
async def test_nothing_is_left_at_the_provider_when_a_batch_is_forgotten(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    fake.replies[wire.model] = lambda body: 400 if "bad" in body["messages"][-1]["content"] else ""
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a", "bad"), model=wire.model, mark=new_mark())
        await over(batches, handle)
        await batches.forget(handle)
        assert fake.batches.files == {}
        await batches.forget(handle)
        with pytest.raises(BatchGone):
            await read(batches, handle)


# --- paid once -------------------------------------------------------------------------------------------------------


@every_wire
async def test_a_batch_is_found_when_the_answer_to_its_submission_was_lost(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    since, mark = now(), new_mark()
    async with opened(wire, base) as batches:
        lines = lines_of(batches, wire, "a", "b")
        for _ in range(3):  # Others of the same size, before and after, over more pages than one.
            await batches.submit(lines, model=wire.model, mark=new_mark())
        fake.batches.lose = 1
        with pytest.raises(ProviderError) as lost:
            await batches.submit(lines, model=wire.model, mark=mark)
        assert lost.value.retryable
        for _ in range(3):
            await batches.submit(lines, model=wire.model, mark=new_mark())
        if wire is ANTHROPIC:
            with pytest.raises(BatchUndecided):
                await batches.find(mark, model=wire.model, total=2, since=since)
        for batch in fake.batches.batches.values():
            await batches.standing({"id": batch.id})

        handle = await batches.find(mark, model=wire.model, total=2, since=since)
        assert handle is not None
        assert fake.batches.batches[handle["id"]] is list(fake.batches.batches.values())[3]
        assert set(await read(batches, handle)) == {"a", "b"}


@every_wire
async def test_no_batch_is_found_when_none_was_submitted(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, _ = server
    since = now()
    async with opened(wire, base) as batches:
        assert await batches.find(new_mark(), model=wire.model, total=1, since=since) is None
        lines = lines_of(batches, wire, "a", "b")
        await batches.submit(lines, model=wire.model, mark="mark")
        # Of another size, or begun before: not in question, running or not.
        assert await batches.find("mar", model=wire.model, total=1, since=since) is None
        later = since + timedelta(hours=2)
        assert await batches.find("mar", model=wire.model, total=2, since=later) is None


@every_wire
async def test_a_refused_submission_leaves_nothing_behind(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        lines = lines_of(batches, wire, "a")
        fake.batches.refuse = 400
        with pytest.raises(BadRequest):
            await batches.submit(lines, model=wire.model, mark=new_mark())
        assert fake.batches.files == {}
        fake.batches.refuse = 429
        with pytest.raises(RateLimited):
            await batches.submit(lines, model=wire.model, mark=new_mark())


# --- hostile results -------------------------------------------------------------------------------------------------


@every_wire
async def test_broken_lines_cost_no_answer_but_their_own(
    wire: Wire, server: tuple[str, FakeProvider], caplog: pytest.LogCaptureFixture
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a", "b"), model=wire.model, mark=new_mark())
        await over(batches, handle)
        name, begin = NAMES[wire.name], handle.get("prefix", "")
        fake.batches.strange = [
            b"not json",
            b"[1]",
            b"",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"' + name.encode() + b'": "' + begin.encode() + b"never-ends",
            json.dumps({name: 7}).encode(),
            json.dumps({name: begin + "../../etc"}).encode(),
            json.dumps({name: f"{begin}unknown"}).encode(),
            # The first of a key counts.
            json.dumps({name: f"{begin}b", "result": [], "response": [], "error": "x"}).encode(),
        ]
        answers = await read(batches, handle)
    assert set(answers) == {"a", "b", "unknown"}
    assert isinstance(answers["a"], Turn)
    assert isinstance(answers["b"], ProviderError)
    assert isinstance(answers["unknown"], ProviderError)
    assert "7 lines unreadable" in caplog.text
    assert "repeated" in caplog.text


WRONG: list[Any] = [None, 7, "text", [], {}, [None], [7], {"a": [1]}]


@every_wire
async def test_an_answer_of_any_form_is_a_turn_or_an_error(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a"), model=wire.model, mark=new_mark())
        await over(batches, handle)
        good = _good_line(fake, wire)
        name = NAMES[wire.name]
        begin = handle.get("prefix", "")
        broken = [variant for variant in _variants(good) if variant.get(name) == good[name]]
        assert len(broken) > 100
        fake.batches.strange = [
            json.dumps({**variant, name: f"{begin}v{number}"}).encode()
            for number, variant in enumerate(broken)
        ]
        answers = await read(batches, handle)
    assert {f"v{number}" for number in range(len(broken))} | {"a"} == set(answers)
    assert all(isinstance(answer, Turn | ProviderError) for answer in answers.values())
    for answer in answers.values():
        if isinstance(answer, Turn):
            json.dumps(answer.to_json())


def _good_line(fake: FakeProvider, wire: Wire) -> dict[str, Any]:
    from tests.fake_batches import _anthropic_line

    if wire is ANTHROPIC:
        key, said = next(iter(fake.batches.batches.values())).answers[0]
        return _anthropic_line(key, said)
    file = next(text for name, text in fake.batches.files.items() if "batch" in name)
    line: dict[str, Any] = json.loads(file.splitlines()[0])
    return line


def _variants(value: Any) -> Iterator[Any]:
    """Give the value with each of its places, one at a time, made each of the wrong things."""
    places: list[tuple[Any, ...]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        places.append(path)
        items: Any = ()
        if isinstance(node, dict):
            items = node.items()
        elif isinstance(node, list):
            items = enumerate(node)
        for key, inner in items:
            walk(inner, (*path, key))

    walk(value, ())
    for path in places[1:]:
        for wrong in WRONG:
            copy = json.loads(json.dumps(value))
            node = copy
            for step in path[:-1]:
                node = node[step]
            node[path[-1]] = wrong
            yield copy


def test_a_line_longer_than_allowed_is_never_kept() -> None:
    lines = LineDecoder(limit=20)
    assert lines.feed(b'{"a": 1}\n{"a": "' + b"x" * 50) == [{"a": 1}]
    assert lines.feed(b'x"}\n{"b"') == [None]
    assert lines.feed(b": 2}\n\n  \n") == [{"b": 2}]


@every_wire
async def test_results_of_a_running_batch_are_not_read(wire: Wire, server: tuple[str, FakeProvider]) -> None:
    base, _ = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a"), model=wire.model, mark=new_mark())
        server[1].batches.batches[handle["id"]].left = 2
        with pytest.raises(BatchUndecided, match="still running"):
            await read(batches, handle)


@every_wire
async def test_results_that_vanished_or_broke_off_are_told_apart(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(lines_of(batches, wire, "a", "b"), model=wire.model, mark=new_mark())
        await over(batches, handle)
        fake.batches.cut = 200
        with pytest.raises(ProviderUnavailable):
            await read(batches, handle)
        fake.batches.cut = None
        assert set(await read(batches, handle)) == {"a", "b"}
        fake.batches.is_gone = True
        with pytest.raises(BatchGone):
            await read(batches, handle)
        with pytest.raises(BatchGone):
            await batches.standing({**handle, "id": "batches/other" if wire is GOOGLE else "other"})


@every_wire
async def test_reading_can_be_left_in_the_middle(wire: Wire, server: tuple[str, FakeProvider]) -> None:
    base, _ = server
    async with opened(wire, base) as batches:
        handle = await batches.submit(
            lines_of(batches, wire, "a", "b", "c"), model=wire.model, mark=new_mark()
        )
        await over(batches, handle)
        found = batches.results(handle)
        await anext(found)
        await found.aclose()  # type: ignore[attr-defined]
        assert len(await read(batches, handle)) == 3


@every_wire
async def test_a_name_that_leads_elsewhere_is_never_asked_for(
    wire: Wire, server: tuple[str, FakeProvider]
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        for name in ("../models", "a/../../b", "batches/../x", "", "a?b", "http://x/y", None, 7):
            with pytest.raises(MalformedResponse) as error:
                await batches.standing({"id": name, "model": "m"})
            assert not error.value.retryable
    assert fake.batches.asked == []


# --- what cannot go in -----------------------------------------------------------------------------------------------


@every_wire
def test_keys_marks_and_sizes_are_checked_before_anything_is_sent(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = batches_of(make_provider(wire.name, api_key=KEY))
    request = wire.request()
    for key in ("", "a b", "ü", "a.b", "x" * (MAX_KEY_CHARS + 1)):
        with pytest.raises(ConfigurationError, match="key"):
            batches.line(key, request)
    batches.line("x" * MAX_KEY_CHARS, request)
    with pytest.raises(BadRequest, match="Unicode"):
        batches.line("a", wire.request(UserMessage("half a pair: \ud800")))
    for options in ({"service_tier": "priority"}, {"service_tier": "standard"}, {"background": True}):
        with pytest.raises(UnsupportedFeature, match=next(iter(options))):
            batches.line("a", wire.request(options=options))
    monkeypatch.setattr(type(batches), "limits", BatchLimits(max_lines=2, max_bytes=900, hours=1))
    with pytest.raises(UnsupportedFeature, match="900"):
        batches.line("a", wire.request(UserMessage("x" * 1000)))


@every_wire
async def test_no_batch_is_sent_that_holds_nothing_or_too_much(
    wire: Wire, server: tuple[str, FakeProvider], monkeypatch: pytest.MonkeyPatch
) -> None:
    base, fake = server
    async with opened(wire, base) as batches:
        lines = lines_of(batches, wire, "a", "b", "c")
        size = sum(map(len, lines))
        tight = [
            BatchLimits(max_lines=2, max_bytes=10**6, hours=1),
            BatchLimits(max_lines=9, max_bytes=size, hours=1),
        ]
        for limits in tight:
            monkeypatch.setattr(type(batches), "limits", limits)
            with pytest.raises(ConfigurationError, match="holds"):
                await batches.submit(lines, model=wire.model, mark="m")
        with pytest.raises(ConfigurationError, match="holds"):
            await batches.submit([], model=wire.model, mark="m")
        with pytest.raises(ConfigurationError, match="mark"):
            await batches.submit(lines[:1], model=wire.model, mark="a mark")
    assert fake.batches.asked == []


def test_providers_without_batches_are_refused_with_a_reason() -> None:
    given: dict[str, Callable[[], Any]] = {
        "xai": lambda: make_provider("xai", api_key=KEY),
        "compatible": lambda: make_provider("compatible", base_url="http://localhost:1/v1"),
        "extractive": lambda: make_provider("extractive"),
    }
    for name, make in given.items():
        assert missing_batches(name)
        with pytest.raises(UnsupportedFeature, match=r"[Bb]atch"):
            batches_of(make())
    for wire in WIRES:
        assert missing_batches(wire.name) == ""
        planned = PlannerExecutor(make_provider(wire.name, api_key=KEY))
        with pytest.raises(UnsupportedFeature, match="several calls"):
            batches_of(planned)
