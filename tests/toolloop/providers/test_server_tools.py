"""Search of the web and of stored files by the provider itself: asked for, read, cited, counted, echoed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Script, sse
from tests.toolloop.providers.search_streams import (
    RESPONSES_ITEMS,
    URL,
    anthropic_program_stream,
    anthropic_stream,
    google_program_stream,
    google_stream,
    responses_program_stream,
    responses_stream,
)
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    XAI,
    Recorder,
    Wire,
    play,
    stored,
)
from toolloop import errors
from toolloop.errors import ConfigurationError
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import Citation, Turn, UserMessage
from toolloop.server_tools import CodeExecution, FileSearch, WebFetch, WebSearch
from toolloop.tools import Toolset

USER = UserMessage("What is new?")


async def sent(wire: Wire, *tools: Any, **changes: Any) -> dict[str, Any]:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    await play(wire.provider(recorder), wire.request(server_tools=tools, **changes))
    return recorder.body


SENT = [
    (OPENAI, WebSearch(), {"type": "web_search"}),
    (
        OPENAI,
        WebSearch(("example.org",), country="DE", context_size="low"),
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["example.org"]},
            "search_context_size": "low",
            "user_location": {"type": "approximate", "country": "DE"},
        },
    ),
    (
        OPENAI,
        FileSearch(("vs_1", "vs_2"), 5),
        {"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"], "max_num_results": 5},
    ),
    (
        XAI,
        WebSearch(blocked_domains=("x.org",)),
        {"type": "web_search", "filters": {"excluded_domains": ["x.org"]}},
    ),
    (XAI, FileSearch(("col_1",)), {"type": "file_search", "vector_store_ids": ["col_1"]}),
    (
        ANTHROPIC,
        WebSearch(blocked_domains=("x.org",), max_uses=3, country="DE"),
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 3,
            "blocked_domains": ["x.org"],
            "user_location": {"type": "approximate", "country": "DE"},
        },
    ),
    (GOOGLE, WebSearch(), {"googleSearch": {}}),
    (GOOGLE, WebFetch(), {"urlContext": {}}),
    (GOOGLE, CodeExecution(), {"codeExecution": {}}),
    (OPENAI, CodeExecution(), {"type": "code_interpreter", "container": {"type": "auto"}}),
    (XAI, CodeExecution(), {"type": "code_interpreter"}),
    (ANTHROPIC, CodeExecution(), {"type": "code_execution_20250825", "name": "code_execution"}),
    (
        ANTHROPIC,
        WebFetch(("example.org",), max_uses=2, max_tokens=5_000),
        {
            "type": "web_fetch_20250910",
            "name": "web_fetch",
            "citations": {"enabled": True},
            "max_uses": 2,
            "max_content_tokens": 5_000,
            "allowed_domains": ["example.org"],
        },
    ),
    (
        GOOGLE,
        FileSearch(("fileSearchStores/a",), 4),
        {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"], "topK": 4}},
    ),
]


@pytest.mark.parametrize(("wire", "tool", "entry"), SENT, ids=lambda value: str(value)[:40])
async def test_tool_is_exactly_this_on_the_wire(wire: Wire, tool: Any, entry: Any) -> None:
    beside = await sent(wire, tool)
    assert len(beside["tools"]) == 2
    assert beside["tools"][-1] == entry
    alone = await sent(wire, tool, tools=())
    assert alone["tools"] == [entry]


async def test_searches_are_limited_for_the_whole_response_on_responses() -> None:
    assert (await sent(OPENAI, WebSearch(max_uses=2)))["max_tool_calls"] == 2
    assert "max_tool_calls" not in await sent(OPENAI, WebSearch())


async def test_gemini_is_asked_to_show_its_calls_only_beside_functions() -> None:
    both = await sent(GOOGLE, WebSearch())
    assert both["toolConfig"]["includeServerSideToolInvocations"] is True
    assert "toolConfig" not in await sent(GOOGLE, WebSearch(), tools=())


@pytest.mark.parametrize("wire", [OPENAI, XAI, ANTHROPIC, GOOGLE], ids=str)
async def test_nothing_is_searched_when_no_tool_may_be_called(wire: Wire) -> None:
    body = await sent(wire, WebSearch(), tools=(), tool_choice="none")
    if wire is GOOGLE:  # It has no word for this but leaving the tool out.
        assert "tools" not in body
    else:
        assert body["tool_choice"] in ("none", {"type": "none"})


REFUSED = [
    (COMPATIBLE, WebSearch(), {}, "'llama3' of compatible cannot search the web"),
    (COMPATIBLE, FileSearch(("a",)), {}, "cannot search files stored at the provider"),
    (OPENAI, WebSearch(), {"model": "brand-new"}, "cannot search the web"),
    (OPENAI, WebSearch(blocked_domains=("a.org",)), {}, "cannot leave out domains"),
    (ANTHROPIC, FileSearch(("a",)), {}, "cannot search files"),
    (ANTHROPIC, WebSearch(context_size="high"), {}, "cannot choose how much"),
    (GOOGLE, WebSearch(("a.org",)), {}, "cannot restrict its web search"),
    (GOOGLE, WebFetch(("a.org",)), {}, "cannot restrict which pages it reads"),
    (OPENAI, WebFetch(), {}, "cannot read pages of the web by itself"),
    (XAI, WebFetch(), {}, "cannot read pages of the web by itself"),
    (COMPATIBLE, CodeExecution(), {}, "cannot run programs by itself"),
    (COMPATIBLE, WebFetch(), {}, "cannot read pages"),
]


@pytest.mark.parametrize(("wire", "tool", "changes", "message"), REFUSED, ids=str)
async def test_request_is_refused_before_it_is_sent_when_the_model_has_no_such_tool(
    wire: Wire, tool: Any, changes: dict[str, Any], message: str
) -> None:
    recorder = Recorder()
    with pytest.raises(errors.UnsupportedFeature, match=message) as caught:
        await play(wire.provider(recorder), wire.request(server_tools=(tool,), **changes))
    assert not caught.value.retryable
    assert recorder.requests == []


def test_settings_are_refused_when_they_contradict_each_other() -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        WebSearch(("a",), ("b",))
    with pytest.raises(ConfigurationError, match="at least 1"):
        WebSearch(max_uses=0)
    with pytest.raises(ConfigurationError, match="one store"):
        FileSearch(())
    with pytest.raises(ConfigurationError, match="not both"):
        WebFetch(("a",), ("b",))
    with pytest.raises(ConfigurationError, match="max_tokens must be at least 1"):
        WebFetch(max_tokens=0)


# --- what comes back -------------------------------------------------------------------------------------------------

COMES_BACK = [
    (
        OPENAI,
        responses_stream(),
        [Citation(URL, "News", 6, 14), Citation(title="a.pdf", file_id="file_1")],
        2,
    ),
    (XAI, responses_stream(), [Citation(URL, "News", 6, 14), Citation(title="a.pdf", file_id="file_1")], 2),
    (ANTHROPIC, anthropic_stream(), [Citation(URL, "News", 6, 15, "é is new, they say")], 2),
    (
        GOOGLE,
        google_stream(),
        [Citation(URL, "News", 6, 14), Citation(title="a.pdf", quote="5 %", file_id="fileSearchStores/1")],
        2,
    ),
]


@pytest.mark.parametrize(("wire", "body", "citations", "searches"), COMES_BACK, ids=str)
async def test_sources_and_searches_are_told_and_the_turn_is_echoed_untouched(
    wire: Wire, body: bytes, citations: list[Citation], searches: int
) -> None:
    recorder = Recorder(body, wire.encode(Script(text=["done"])))
    provider = wire.provider(recorder)
    tools = (WebSearch(),)
    events = [e async for e in provider.stream(wire.request(USER, server_tools=tools))]
    turn: Turn = stored(events[-1].turn)  # type: ignore[union-attr]

    assert turn.text == "Sure: é is new."
    assert turn.stop == "end"
    assert turn.tool_calls == ()
    assert list(turn.citations) == citations
    assert turn.usage.server_tools == searches
    assert (turn.usage.input_total, turn.usage.output_total) == (10, 5)

    assert turn.native
    await play(provider, wire.request(USER, turn, UserMessage("More?"), server_tools=tools))
    echoed = json.dumps(json.loads(recorder.requests[-1].content), ensure_ascii=False)
    for item in turn.native:
        assert json.dumps(item, ensure_ascii=False) in echoed
    secrets = {OPENAI: ["ws_1", "fs_1"], XAI: ["ws_1", "fs_1"], GOOGLE: ["S+/==", "toolCall"]}
    for secret in secrets.get(wire, ["E+/=", "I+/=", '{"query": "news"}']):
        assert secret in echoed


RAN = [
    (OPENAI, responses_program_stream(), [Citation(title="plot.png", start=4, end=14, file_id="cfile_1")], 1),
    (XAI, responses_program_stream(), [Citation(title="plot.png", start=4, end=14, file_id="cfile_1")], 1),
    (ANTHROPIC, anthropic_program_stream(), [Citation(URL, "News", 4, 14, "It is new.")], 2),
    (GOOGLE, google_program_stream(), [Citation(URL)], 3),
]


@pytest.mark.parametrize(("wire", "body", "citations", "runs"), RAN, ids=str)
async def test_pages_and_programs_are_told_counted_and_echoed_untouched(
    wire: Wire, body: bytes, citations: list[Citation], runs: int
) -> None:
    recorder = Recorder(body, wire.encode(Script(text=["done"])))
    provider = wire.provider(recorder)
    tools = (CodeExecution(),)
    events = [e async for e in provider.stream(wire.request(USER, server_tools=tools))]
    turn: Turn = stored(events[-1].turn)  # type: ignore[union-attr]
    assert turn.text == "42: it is new."
    assert turn.tool_calls == ()
    assert list(turn.citations) == citations
    assert turn.usage.server_tools == runs
    assert turn.native
    await play(provider, wire.request(USER, turn, UserMessage("More?"), server_tools=tools))
    echoed = json.dumps(json.loads(recorder.requests[-1].content))
    for item in turn.native:
        assert json.dumps(item) in echoed


async def test_citations_have_no_span_when_gemini_names_sources_only() -> None:
    grounding = {"groundingChunks": [{"web": {"uri": URL, "title": "News"}}]}
    content = {"role": "model", "parts": [{"text": "New."}]}
    candidate = {"content": content, "finishReason": "STOP", "groundingMetadata": grounding}
    body = sse({"candidates": [candidate]})
    _, turn = await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert turn.citations == (Citation(URL, "News"),)
    assert turn.usage.server_tools == 1


async def test_billed_searches_count_when_openai_reports_them() -> None:
    response = {
        "status": "completed",
        "output": RESPONSES_ITEMS[:1] * 4,
        "tool_usage": {"web_search": {"num_requests": 3}},
    }
    body = sse({"type": "response.completed", "response": response}, named=True)
    _, turn = await play(OPENAI.provider(Recorder(body)), OPENAI.request())
    assert turn.usage.server_tools == 3


async def test_run_passes_server_tools_on_and_says_what_they_leave_uncounted() -> None:
    recorder = Recorder(anthropic_stream())
    events = run_loop(
        LoopInput(
            model=ANTHROPIC.model, system="", history=[USER], toolset=Toolset(), server_tools=(WebSearch(),)
        ),
        LoopServices(provider=ANTHROPIC.provider(recorder)),
    )
    end = [event async for event in events][-1]
    assert isinstance(end, RunFinished)
    assert end.status == "completed"
    assert recorder.body["tools"][0]["name"] == "web_search"
    assert end.usage.server_tools == 2
    assert any("2 searches" in note for note in end.data["notes"])


async def test_paused_search_goes_on_where_it_stood() -> None:
    """A long search ends in pause_turn; its blocks go back as they are and the answer comes in the next turn."""
    paused = anthropic_stream().replace(b'"end_turn"', b'"pause_turn"')
    recorder = Recorder(paused, ANTHROPIC.encode(Script(text=[" Done."])))
    events = run_loop(
        LoopInput(
            model=ANTHROPIC.model, system="", history=[USER], toolset=Toolset(), server_tools=(WebSearch(),)
        ),
        LoopServices(provider=ANTHROPIC.provider(recorder)),
    )
    end = [event async for event in events][-1]
    assert isinstance(end, RunFinished)
    assert end.text == "Sure: é is new. Done."
    last = recorder.body["messages"][-1]
    assert last["role"] == "assistant"
    assert [block["type"] for block in last["content"]][:2] == ["server_tool_use", "web_search_tool_result"]
