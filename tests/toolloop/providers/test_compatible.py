"""The chat completions wire: per-endpoint settings, and the disorder local servers send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Script, sse
from tests.toolloop.providers.wires import COMPATIBLE, KEY, SEARCH, Recorder, answer, play
from toolloop import errors
from toolloop.events import ToolArgumentsDelta, ToolCallStarted
from toolloop.messages import ToolCall, ToolResult, Turn, UserMessage
from toolloop.providers.registry import list_remote_models, make_provider

USER = UserMessage("What is the duty?")


def chunk(*calls: dict[str, Any], finish: str | None = None, **delta: Any) -> dict[str, Any]:
    if calls:
        delta["tool_calls"] = list(calls)
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def piece(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


async def turn_of(*chunks: dict[str, Any]) -> Turn:
    recorder = Recorder(sse(*chunks, done=True))
    _, turn = await play(COMPATIBLE.provider(recorder), COMPATIBLE.request())
    return turn


async def test_body_is_exactly_this_by_default() -> None:
    recorder = Recorder(COMPATIBLE.encode(Script(text=["x"])))
    request = COMPATIBLE.request(
        max_output_tokens=500, options={"temperature": 0, "effort": "low"}, cache_key="t:1", user_key="ada"
    )
    await play(COMPATIBLE.provider(recorder, api_key=""), request)
    function = {
        "name": "search_documents",
        "description": "Search the documents.",
        "parameters": SEARCH.parameters,
    }
    assert recorder.body == {
        "model": "llama3",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": USER.text}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "auto",
        "max_tokens": 500,
        "temperature": 0,
    }
    assert str(recorder.requests[0].url) == "http://localhost:11434/v1/chat/completions"


async def test_every_request_has_the_head_that_the_client_builds() -> None:
    recorder = Recorder()
    client = httpx2.AsyncClient(
        transport=httpx2.MockTransport(recorder), headers={"X-Ours": "1"}, params={"v": "2"}
    )
    provider = make_provider("compatible", http_client=client, api_key=KEY, **COMPATIBLE.settings)
    for text in ("one", "and another that is longer"):
        recorder.bodies = [COMPATIBLE.encode(Script(text=["x"]))]
        assert [event async for event in provider.stream(COMPATIBLE.request(UserMessage(text)))]
    first, second = recorder.requests
    built = client.build_request("POST", second.url, content=second.content, headers=second.headers)
    assert second.headers.raw == built.headers.raw
    assert int(second.headers["content-length"]) == len(second.content) > len(first.content)
    assert second.url == first.url
    assert second.url.params["v"] == "2"
    assert (second.headers["x-ours"], second.headers["authorization"]) == ("1", f"Bearer {KEY}")


async def test_each_request_offers_its_own_tools() -> None:
    recorder = Recorder()
    provider = COMPATIBLE.provider(recorder)
    other = replace(SEARCH, parameters={**SEARCH.parameters, "title": "Other"})
    offered = [(SEARCH,), (SEARCH,), (other,), (SEARCH, replace(SEARCH, name="more")), (), (SEARCH,)]
    for tools in offered:
        recorder.bodies = [COMPATIBLE.encode(Script(text=["x"]))]
        assert [event async for event in provider.stream(COMPATIBLE.request(tools=tools))]
        sent = [tool["function"] for tool in recorder.body.get("tools", [])]
        assert [(one["name"], one["parameters"]) for one in sent] == [
            (tool.name, tool.parameters) for tool in tools
        ]
        assert recorder.body["messages"][-1]["content"] == USER.text


async def test_half_a_surrogate_pair_in_an_answer_is_read() -> None:
    turn = await turn_of(chunk(content="a\ud800b"), chunk(finish="stop"))
    assert turn.text == "a?b"


async def test_a_cookie_of_the_server_goes_back_with_the_next_request() -> None:
    seen: list[str | None] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers.get("cookie"))
        cookie = {"set-cookie": f"node={len(seen)}"}
        return httpx2.Response(200, content=COMPATIBLE.encode(Script(text=["x"])), headers=cookie)

    provider = COMPATIBLE.provider(handler)
    for _ in range(3):
        assert [event async for event in provider.stream(COMPATIBLE.request())]
    assert seen == [None, "node=1", "node=2"]


async def test_settings_of_the_endpoint_add_what_it_understands() -> None:
    recorder = Recorder(COMPATIBLE.encode(Script(text=["x"])))
    provider = COMPATIBLE.provider(
        recorder,
        strict=True,
        parallel_tool_calls=True,
        stream_usage=False,
        reasoning_effort=True,
        send_keys=True,
        max_tokens_field="max_completion_tokens",
    )
    request = COMPATIBLE.request(
        max_output_tokens=500, options={"effort": "low"}, cache_key="t:1", user_key="ada"
    )
    await play(provider, request)
    body = recorder.body
    assert body["tools"][0]["function"]["strict"] is True
    assert body["parallel_tool_calls"] is True
    assert "stream_options" not in body
    assert body["reasoning_effort"] == "low"
    assert body["max_completion_tokens"] == 500
    assert "max_tokens" not in body
    assert len(body["prompt_cache_key"]) == len(body["user"]) == 32


async def test_stop_is_tools_when_finish_reason_says_stop_beside_calls() -> None:
    turn = await turn_of(chunk(piece("{}", "f", id="a", index=0)), chunk(finish="stop"))
    assert turn.stop == "tools"


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [chunk(piece('{"n":1}', "f", id="a")), chunk(piece('{"n":2}', "g", id="b"))],
            id="no index, whole calls",
        ),
        pytest.param(
            [
                chunk(piece('{"n":', "f", id="a", index=0), piece('{"n":', "g", id="b", index=1)),
                chunk(piece("2}", index=1), piece("1}", index=0)),
            ],
            id="interleaved by index",
        ),
        pytest.param(
            [chunk(piece('{"n":1}', "f", id="a", index=0)), chunk(piece('{"n":2}', "g", id="b", index=0))],
            id="one index for all",
        ),
        pytest.param(
            [
                chunk(piece("", "f", id="a", index=0)),
                chunk(piece('{"n":1}', "f", id="a", index=0)),
                chunk(piece({"n": 2}, "g", id="b", index=1)),
            ],
            id="name repeated, arguments as an object",
        ),
        pytest.param([chunk(piece('{"n":1}', "f"), piece('{"n":2}', "g"))], id="neither id nor index"),
        pytest.param(
            [
                chunk(piece('{"n":1}', "f", id="same", index=0)),
                chunk(piece('{"n":2}', "g", id="same", index=1)),
            ],
            id="the same id twice",
        ),
        pytest.param(
            [chunk(piece('{"n":', "f")), chunk(piece("1}")), chunk(piece('{"n":2}', "g"))],
            id="no index, in pieces",
        ),
    ],
)
async def test_calls_are_put_together_however_a_server_sends_them(chunks: list[dict[str, Any]]) -> None:
    recorder = Recorder(sse(*chunks, chunk(finish="tool_calls")))
    events, turn = await play(COMPATIBLE.provider(recorder), COMPATIBLE.request())
    assert [(c.name, c.arguments) for c in turn.tool_calls] == [("f", {"n": 1}), ("g", {"n": 2})]
    ids = [c.id for c in turn.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 2
    assert [e.call_id for e in events if isinstance(e, ToolCallStarted)] == ids
    for call in turn.tool_calls:
        deltas = [e.delta for e in events if isinstance(e, ToolArgumentsDelta) and e.call_id == call.id]
        assert json.loads("".join(deltas)) == call.arguments


async def test_id_is_replaced_when_an_earlier_turn_had_it() -> None:
    earlier = Turn("compatible", "llama3", tool_calls=(ToolCall("call_0", "f", {}),), stop="tools")
    recorder = Recorder(sse(chunk(piece("{}", "f", id="call_0", index=0)), chunk(finish="stop")))
    request = COMPATIBLE.request(USER, earlier, ToolResult("call_0", "f", "one"))
    _, turn = await play(COMPATIBLE.provider(recorder), request)
    assert turn.tool_calls[0].id != "call_0"
    assert turn.native is not None
    assert turn.native[0]["tool_calls"][0]["id"] == turn.tool_calls[0].id


async def test_broken_arguments_do_not_go_back_to_the_server() -> None:
    broken = sse(chunk(piece('{"n": oops', "f", id="a", index=0)), chunk(finish="tool_calls"))
    recorder = Recorder(broken, COMPATIBLE.encode(Script(text=["done"])))
    provider = COMPATIBLE.provider(recorder)
    turn = [event async for event in provider.stream(COMPATIBLE.request(USER))][-1].turn  # type: ignore[union-attr]
    assert turn.tool_calls[0].raw == '{"n": oops'
    result = ToolResult("a", "f", "arguments are not JSON", is_error=True)
    await play(provider, COMPATIBLE.request(USER, turn, result))
    messages = recorder.body["messages"]
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert messages[3] == {"role": "tool", "tool_call_id": "a", "content": "Error: arguments are not JSON"}


@pytest.mark.parametrize(
    "junk",
    [
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"delta": None, "finish_reason": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"delta": {"tool_calls": [{"function": None}]}}]},
        {"usage": {"prompt_tokens": None, "prompt_tokens_details": None}},
    ],
    ids=str,
)
async def test_null_fields_are_tolerated(junk: dict[str, Any]) -> None:
    turn = await turn_of(junk, chunk(content="x"), chunk(finish="stop"))
    assert turn.text == "x"


async def test_reasoning_is_read_from_either_field_and_stays_out_of_the_answer() -> None:
    turn = await turn_of(
        chunk(reasoning="A"), chunk(reasoning_content="B"), chunk(content="x", finish="stop")
    )
    assert (turn.reasoning, turn.text) == ("AB", "x")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 500, "message": "slot unavailable"}, errors.ProviderUnavailable),
        ({"code": 400, "message": "exceeds context size"}, errors.ContextTooLong),
        ({"message": "CUDA out of memory"}, errors.ProviderUnavailable),
    ],
    ids=str,
)
async def test_error_inside_a_stream_is_classified(
    error: dict[str, Any], kind: type[errors.ProviderError]
) -> None:
    body = sse(chunk(content="half"), {"error": error})
    with pytest.raises(errors.ProviderError) as caught:
        await play(COMPATIBLE.provider(Recorder(body)), COMPATIBLE.request())
    assert type(caught.value) is kind


def test_a_base_url_is_required() -> None:
    with pytest.raises(errors.ConfigurationError, match="base URL"):
        make_provider("compatible")


# --- which models a server has ---------------------------------------------------------------------------------------


async def test_remote_models_are_listed_sorted_and_once() -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        assert str(request.url) == "http://localhost:11434/v1/models"
        assert request.headers["authorization"] == "Bearer local-key"
        data = [{"id": "qwen3"}, {"id": "llama3"}, {"id": "qwen3"}, {"id": None}, None]
        return httpx2.Response(200, json={"object": "list", "data": data})

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        models = await list_remote_models("http://localhost:11434/v1/", "local-key", client)
        assert not client.is_closed
    assert models == ["llama3", "qwen3"]


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (httpx2.Response(401, json={"error": {"message": "no"}}), errors.AuthFailed),
        (httpx2.Response(502, text="bad gateway"), errors.ProviderUnavailable),
        (httpx2.ConnectError("refused"), errors.ProviderUnavailable),
    ],
    ids=str,
)
async def test_remote_models_raise_when_the_server_fails(
    response: httpx2.Response | Exception, kind: type[errors.ProviderError]
) -> None:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if isinstance(response, Exception):
            raise response
        return response

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        with pytest.raises(errors.ProviderError) as caught:
            await list_remote_models("http://localhost:1/v1", "", client)
    assert type(caught.value) is kind


async def test_remote_models_are_empty_when_the_list_is_null() -> None:
    handler = Recorder(httpx2.Response(200, json={"data": None}))
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as client:
        assert await list_remote_models("http://localhost:1/v1", "", client) == []


async def test_html_with_status_200_is_no_answer() -> None:
    body = answer(b"<html>login</html>")
    with pytest.raises(errors.ProviderUnavailable):
        await play(COMPATIBLE.provider(Recorder(body)), COMPATIBLE.request())
