"""An answer of Claude that cites our passages by itself: the same marks and sources as any other, with its exact words."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async

from apps.conversations.citations.markers import CitablePassage, answer_cite
from apps.conversations.models import Message
from runs.models import RunStep
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask, fresh, make_library
from tests.toolloop.providers.encodings import sse

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "anthropic/claude-sonnet-5-5"
TEXT = (
    "This schedule lists the duties on vehicles of all kinds. The duty on cars is 10 % ad valorem since 2024. "
    "Bicycles are dutiable at 14 % and have been for years."
)


def streamed(stop: str, *blocks: dict[str, Any]) -> httpx2.Response:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "usage": {}}}]
    for index, block in enumerate(blocks):
        begun = {**block}
        deltas: list[dict[str, Any]] = []
        if block["type"] == "text":
            begun |= {"text": "", "citations": []}
            deltas = [{"type": "text_delta", "text": block["text"]}]
            deltas += [{"type": "citations_delta", "citation": c} for c in block["citations"]]
        else:
            begun["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    head = {"content-type": "text/event-stream"}
    return httpx2.Response(200, headers=head, content=sse(*events, named=True))


class Claude:
    """The Messages API as far as this needs it: searches, then cites the piece of the first passage that names cars."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        if not any(m["role"] == "assistant" for m in body["messages"]):
            search = {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "search_documents",
                "input": {"query": "duty on cars"},
            }
            return streamed("tool_use", search)
        results = body["messages"][-1]["content"][0]["content"]
        pieces = [piece["text"] for piece in results[0]["content"]]
        at = next(n for n, piece in enumerate(pieces) if "cars" in piece)
        cited = {
            "type": "search_result_location",
            "source": results[0]["source"],
            "title": results[0]["title"],
            "search_result_index": 0,
            "start_block_index": at,
            "end_block_index": at + 1,
            "cited_text": pieces[at],
        }
        return streamed(
            "end_turn",
            {"type": "text", "text": "Since 2024 vehicles", "citations": [cited]},
            # What our own rules ask of every model, beside what the wire has.
            {"type": "text", "text": f" [{results[0]['source']}].", "citations": []},
        )


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Claude:
    fake = Claude()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setattr(
        "runs.providers._http_client", lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(fake))
    )
    return fake


async def test_native_citations_are_the_marks_and_quotes_of_the_answer(
    cast: Cast, claude: Claude, lane_threads: Executor, found: Any
) -> None:
    library: Library = await sync_to_async(make_library)(cast, texts=[TEXT])
    turn = await sync_to_async(ask)(cast, model=MODEL)
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    (chunk,) = library.chunks
    assert row.run.status == "completed", row.run.error_message
    assert row.run.answer == f"Since 2024 vehicles [c{chunk.pk}]."
    assert row.said[Message.Author.ASSISTANT] == "Since 2024 vehicles [1]."
    (cited,) = row.cited
    quote = "The duty on cars is 10 % ad valorem since 2024."
    assert cited.quote == quote
    assert (cited.char_start, cited.char_end) == (TEXT.index(quote), TEXT.index(quote) + len(quote))
    assert cited.chunk_ref == chunk.pk

    def stored() -> Any:
        with tenant_scope(cast.tenant.pk):
            return RunStep.objects.filter(run=row.run).latest("index").turn

    kept = await sync_to_async(stored)()
    assert kept["citations"][0]["passage"] == f"c{chunk.pk}"
    assert kept["native"][0]["citations"][0]["type"] == "search_result_location"
    assert claude.bodies[1]["messages"][-1]["content"][0]["content"][0]["citations"] == {"enabled": True}


def test_a_named_quote_counts_where_the_passage_has_it_and_only_there() -> None:
    text = "Cars pay 10 %. Bicycles pay 14 %."

    def quoted(quote: str) -> str:
        passage = CitablePassage(1, 1, "a", "b", text, quote=quote)
        return answer_cite("Bicycles pay 14 % [c1]", {1: passage}).sources[0].quote

    assert quoted("Cars pay 10 %. ") == "Cars pay 10 %."
    assert quoted("Nothing of the kind.") == "Bicycles pay 14 %."


def test_a_mark_that_repeats_the_one_before_it_is_shown_once() -> None:
    passages = {n: CitablePassage(n, 1, "a", "b", "x") for n in (1, 2)}
    assert answer_cite("A [c1] [c1]. B [c1] [c2]", passages).text == "A [1] . B [1] [2]"
    assert answer_cite("A [c1]\n[c1]", passages).text == "A [1]\n[1]"
