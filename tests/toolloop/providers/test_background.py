"""Answers in the background over real HTTP semantics: events as in https://developers.openai.com/api/docs/guides/background."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import httpx2
import pytest

from tests.toolloop.helpers import Recorder, add, loop_values
from tests.toolloop.providers.wires import OPENAI, SlowStream, play
from toolloop.errors import BadRequest, ProviderUnavailable
from toolloop.events import Event, RunFinished, TextDelta
from toolloop.fallback import FallbackProvider
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.planner_executor import PlannerExecutor
from toolloop.tools import Toolset

Answerer = Callable[[httpx2.Request], httpx2.Response]
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "one two three", "annotations": []}],
}
DONE: dict[str, Any] = {
    "id": "resp_7",
    "object": "response",
    "background": True,
    "status": "completed",
    "service_tier": "default",
    "output": [MESSAGE],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
UNDER_WAY = {**DONE, "status": "in_progress", "output": [], "usage": None}
EVENTS: list[dict[str, Any]] = [
    {"type": "response.queued", "response": {**UNDER_WAY, "status": "queued"}},
    {"type": "response.in_progress", "response": UNDER_WAY},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "one "},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "two "},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "three"},
    {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
    {"type": "response.completed", "response": DONE},
]


def told(first: int, last: int) -> list[bytes]:
    """Return the events of these numbers, both included, as the wire has them."""
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(EVENTS)
        if first <= number <= last
    ]


def stream(*pieces: bytes, then: Callable[[], Any] | None = None) -> httpx2.Response:
    return httpx2.Response(
        200, headers={"content-type": "text/event-stream"}, stream=SlowStream(pieces, then)
    )


async def cut() -> None:
    raise httpx2.ReadError("connection reset")


async def for_ever() -> None:
    await asyncio.Event().wait()


class Server:
    """Answers requests in turn, and keeps them as (method, path with query, body)."""

    def __init__(self, *answers: httpx2.Response) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.method, request.url.raw_path.decode().removeprefix("/v1")))
        if request.content:
            self.bodies.append(json.loads(request.content))
        if request.url.path.endswith("/cancel"):
            return httpx2.Response(200, json={**UNDER_WAY, "status": "cancelled"})
        return self.answers.pop(0)


class Keeping(Recorder):
    """A journal that keeps ids as one on rows does."""

    def __init__(self, known: str = "") -> None:
        super().__init__()
        self.known = known
        self.ids: list[tuple[int, str]] = []

    async def response_started(self, step: int, response_id: str) -> None:
        self.ids.append((step, response_id))

    def response_of(self, step: int) -> str | None:
        return self.known if step == 0 else ""


def looped(server: Answerer, *, wrap: Any = None, **given: Any) -> AsyncIterator[Event]:
    provider = OPENAI.provider(server)
    provider = provider if wrap is None else wrap(provider)
    settings: dict[str, Any] = {
        "limits": Limits(max_seconds=None, max_retries=1, retry_min_s=0.001),
        "options": {"background": True},
        "toolset": Toolset(),
        **given,
    }

    async def events() -> AsyncIterator[Event]:
        try:
            async for event in run_loop(
                *loop_values(
                    model="gpt-5",
                    system="",
                    history=[UserMessage("Count to three.")],
                    provider=provider,
                    **settings,
                )
            ):
                yield event
        finally:
            await provider.aclose()

    return events()


async def run(server: Answerer, **given: Any) -> tuple[RunFinished, str]:
    events = [event async for event in looped(server, **given)]
    assert isinstance(events[-1], RunFinished)
    return events[-1], "".join(e.text for e in events if isinstance(e, TextDelta))


async def test_it_is_stored_there_and_only_then() -> None:
    server = Server(stream(*told(0, 7)))
    end, said = await run(server)
    assert (end.status, end.text, said) == ("completed", "one two three", "one two three")
    assert server.asked == [("POST", "/responses")]
    assert server.bodies == [
        {
            "model": "gpt-5",
            "input": [{"role": "user", "content": "Count to three."}],
            "store": True,
            "background": True,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
        }
    ]
    usual = Server(stream(*told(0, 7)))
    await run(usual, options={})
    assert usual.bodies[0] == {
        k: v for k, v in {**server.bodies[0], "store": False}.items() if k != "background"
    }


async def test_a_cut_connection_is_taken_up_behind_the_last_event_and_nothing_is_said_twice() -> None:
    journal = Keeping()
    server = Server(
        stream(*told(0, 3), then=cut),
        stream(*told(4, 4)),  # ends without a word, as a proxy's time-out does
        stream(*told(5, 7)),
    )
    end, said = await run(server, journal=journal)
    assert (end.status, end.text, said) == ("completed", "one two three", "one two three")
    assert server.asked == [
        ("POST", "/responses"),
        ("GET", "/responses/resp_7?stream=true&starting_after=3"),
        ("GET", "/responses/resp_7?stream=true&starting_after=4"),
    ]
    assert end.usage.requests == 1
    assert (end.usage.input_total, end.usage.output_total) == (100, 20)
    assert journal.ids == [(0, "resp_7")]


async def test_a_connection_that_is_cut_before_the_id_is_known_is_an_error_like_any() -> None:
    server = Server(stream(then=cut), stream(*told(0, 7)))
    end, _ = await run(server)
    assert end.status == "completed"
    assert server.asked == [("POST", "/responses")] * 2


async def test_a_stop_is_told_to_the_provider() -> None:
    stop = asyncio.Event()
    server = Server(stream(*told(0, 4), then=for_ever))
    events: list[Event] = []
    async for event in looped(server, stop=stop):
        events.append(event)
        if isinstance(event, TextDelta) and event.text == "two ":
            stop.set()
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].status, events[-1].text) == ("stopped", "one two ")
    assert server.asked == [("POST", "/responses"), ("POST", "/responses/resp_7/cancel")]


@pytest.mark.parametrize(
    ("journal", "cancelled"),
    [(None, True), (Keeping, False)],
    ids=["nobody will fetch it", "the next worker fetches it"],
)
async def test_a_process_that_goes_down_stops_it_only_where_no_other_will_fetch_it(
    journal: Any, cancelled: bool
) -> None:
    server = Server(stream(*told(0, 4), then=for_ever))
    given = {} if journal is None else {"journal": journal()}
    begun = asyncio.Event()

    async def follow() -> None:
        async for event in looped(server, **given):
            if isinstance(event, TextDelta) and event.text == "two ":
                begun.set()

    task = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        await begun.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    told_to_stop = ("POST", "/responses/resp_7/cancel") in server.asked
    assert told_to_stop is cancelled


async def test_the_next_worker_fetches_a_finished_answer_and_pays_nothing_twice() -> None:
    server = Server(httpx2.Response(200, json=DONE))
    end, said = await run(server, journal=Keeping("resp_7"))
    assert (end.status, end.text, said) == ("completed", "one two three", "one two three")
    assert server.asked == [("GET", "/responses/resp_7")]
    assert (end.usage.input_total, end.usage.output_total) == (100, 20)


async def test_the_next_worker_follows_an_answer_under_way_from_its_start() -> None:
    server = Server(httpx2.Response(200, json=UNDER_WAY), stream(*told(0, 7)))
    end, said = await run(server, journal=Keeping("resp_7"))
    assert (end.status, said) == ("completed", "one two three")
    assert server.asked == [("GET", "/responses/resp_7"), ("GET", "/responses/resp_7?stream=true")]


@pytest.mark.parametrize(
    "gone",
    [
        httpx2.Response(404, json={"error": {"message": "Response with id 'resp_7' not found."}}),
        httpx2.Response(200, json={**DONE, "status": "cancelled", "output": []}),
        httpx2.Response(200, json={**DONE, "status": "failed", "output": []}),
    ],
    ids=["expired", "cancelled", "failed"],
)
async def test_an_answer_that_is_of_no_use_is_asked_for_again(gone: httpx2.Response) -> None:
    journal = Keeping("resp_7")
    server = Server(gone, stream(*told(0, 7)))
    end, _ = await run(server, journal=journal)
    assert (end.status, end.text) == ("completed", "one two three")
    assert server.asked == [("GET", "/responses/resp_7"), ("POST", "/responses")]
    assert journal.ids == [(0, "resp_7")]


async def test_a_key_that_is_wrong_by_now_does_not_begin_a_second_answer() -> None:
    refusal = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
    server = Server(httpx2.Response(401, json=refusal))
    end, _ = await run(server, journal=Keeping("resp_7"))
    assert (end.status, end.error_code) == ("failed", "auth_failed")
    assert server.asked == [("GET", "/responses/resp_7")]


async def test_a_time_that_is_over_stops_it_too() -> None:
    server = Server(stream(*told(0, 3), then=for_ever))
    request = OPENAI.request(options={"background": True}, timeout_s=0.3)
    with pytest.raises(ProviderUnavailable) as late:
        await play(OPENAI.provider(server), request)
    assert late.value.code == "provider_timeout"
    assert server.asked[-1] == ("POST", "/responses/resp_7/cancel")


async def test_a_turn_of_several_calls_takes_none_for_another() -> None:
    """A planner whose first answer is no plan is asked again: that is a new answer, not the one that is there already."""
    journal = Keeping("resp_7")
    server = Server(*(stream(*told(0, 7)) for _ in range(3)))
    end, _ = await run(
        server,
        journal=journal,
        wrap=lambda provider: PlannerExecutor(provider, planner_retries=1),
        toolset=Toolset([add]),
        limits=Limits(max_seconds=None, max_retries=0),
    )
    assert end.status == "failed"
    assert server.asked == [("POST", "/responses")] * 2
    assert journal.ids == []


async def test_another_model_does_not_take_up_the_answer_of_the_first() -> None:
    refusal = {"error": {"message": "busy", "code": "rate_limit_exceeded"}}
    first = Server(httpx2.Response(429, json=refusal))
    second = Server(stream(*told(0, 7)))
    other = OPENAI.provider(second)
    end, _ = await run(
        first,
        journal=Keeping("resp_7"),
        wrap=lambda provider: FallbackProvider([(provider, "gpt-5"), (other, "gpt-5-mini")]),
    )
    assert (end.status, end.text) == ("completed", "one two three")
    assert first.asked == [("GET", "/responses/resp_7")]
    assert second.asked == [("POST", "/responses")]


async def test_an_answer_that_cannot_be_used_is_asked_for_anew() -> None:
    empty = {**DONE, "output": []}
    server = Server(httpx2.Response(200, json=empty), stream(*told(0, 7)))
    end, _ = await run(server, journal=Keeping("resp_7"))
    assert (end.status, end.text) == ("completed", "one two three")
    assert server.asked == [("GET", "/responses/resp_7"), ("POST", "/responses")]


async def test_what_the_provider_refuses_is_not_asked_for_again() -> None:
    """An organisation that may not store is told so by the provider; we do not fall back to anything."""
    refusal = {"error": {"message": "Background mode is not available for your organization."}}
    server = Server(httpx2.Response(400, json=refusal))
    request = OPENAI.request(options={"background": True})
    with pytest.raises(BadRequest, match="not available"):
        await play(OPENAI.provider(server), request)
    assert server.asked == [("POST", "/responses")]
