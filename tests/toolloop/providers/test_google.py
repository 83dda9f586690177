"""The Gemini wire: exact request bodies, and what only it does."""

from __future__ import annotations

import sys
from typing import Any

import httpx2
import pytest

from tests.toolloop.providers.encodings import Call, Script, sse
from tests.toolloop.providers.wires import GOOGLE, KEY, SEARCH, Recorder, play
from toolloop import errors
from toolloop.messages import ToolCall, ToolResult, Turn, UserMessage
from toolloop.tokens import Usage

USER = UserMessage("What is the duty?")


async def sent_by(*messages: Any, **changes: Any) -> dict[str, Any]:
    recorder = Recorder(GOOGLE.encode(Script(text=["x"])))
    await play(GOOGLE.provider(recorder), GOOGLE.request(*messages, **changes))
    return recorder.body


async def test_body_is_exactly_this() -> None:
    recorder = Recorder(GOOGLE.encode(Script(text=["x"])))
    options = {"effort": "low", "temperature": 0.5}
    await play(GOOGLE.provider(recorder), GOOGLE.request(options=options, max_output_tokens=10**6))
    assert recorder.body == {
        "contents": [{"role": "user", "parts": [{"text": USER.text}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "search_documents",
                        "description": "Search the documents.",
                        "parametersJsonSchema": SEARCH.parameters,
                    }
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 65_536,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
        },
    }
    sent = recorder.requests[0]
    assert sent.url.host == "generativelanguage.googleapis.com"
    assert sent.url.params["alt"] == "sse"
    assert sent.headers["x-goog-api-key"] == KEY
    assert KEY not in str(sent.url)


async def test_thinking_is_steered_by_budget_where_the_profile_says_so() -> None:
    body = await sent_by(model="gemini-2.5-flash", options={"effort": "high"})
    config = body["generationConfig"]["thinkingConfig"]
    assert config == {"includeThoughts": True, "thinkingBudget": 24_576}


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_api_version_and_host_are_settings(version: str) -> None:
    recorder = Recorder(GOOGLE.encode(Script(text=["x"])))
    provider = GOOGLE.provider(recorder, api_version=version, base_url="http://127.0.0.1:4010/")
    await play(provider, GOOGLE.request())
    url = recorder.requests[0].url
    assert str(url).startswith(f"http://127.0.0.1:4010/{version}/models/gemini-3.8-flash:stream")


async def test_model_name_cannot_leave_its_place_in_the_path() -> None:
    recorder = Recorder(GOOGLE.encode(Script(text=["x"])))
    await play(GOOGLE.provider(recorder), GOOGLE.request(model="models/x?key=1#y"))
    assert recorder.requests[0].url.path.endswith("/models/x?key=1#y:streamGenerateContent")
    assert "key" not in recorder.requests[0].url.params


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
async def test_error_is_retryable_when_the_model_wrote_a_malformed_call(reason: str) -> None:
    body = sse({"candidates": [{"finishReason": reason, "finishMessage": "print(x)"}]})
    with pytest.raises(errors.MalformedResponse, match=reason) as caught:
        await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert caught.value.retryable


async def test_prompt_is_refused_when_it_was_blocked_without_candidates() -> None:
    body = sse(
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "candidates": None, "usageMetadata": None}
    )
    with pytest.raises(errors.ContentRefused, match="PROHIBITED_CONTENT") as caught:
        await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert not caught.value.retryable


async def test_request_is_bad_when_a_signature_is_missing() -> None:
    body = sse({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]})
    with pytest.raises(errors.BadRequest, match="signature"):
        await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("SAFETY", "filter"),
        ("RECITATION", "filter"),
        ("SPII", "filter"),
        ("OTHER", "error"),
        ("CONTINUATION", "length"),
        ("A_NEW_REASON", "end"),
    ],
)
async def test_finish_reasons_map(reason: str, stop: str) -> None:
    content = {"role": "model", "parts": [{"text": "x"}]}
    body = sse({"candidates": [{"content": content, "finishReason": reason}]})
    recorder = Recorder(body)
    _, turn = await play(GOOGLE.provider(recorder), GOOGLE.request())
    assert turn.stop == stop
    assert turn.stop_detail == reason
    assert len(recorder.requests) == 1, "no automatic continuation, no automatic calls"


@pytest.mark.parametrize(
    "candidate",
    [
        {"finishReason": "STOP"},
        {"finishReason": "STOP", "content": None},
        {"finishReason": "STOP", "content": {"role": "model"}},
        {"finishReason": "STOP", "content": {"parts": None}},
        {"finishReason": "STOP", "content": {"parts": [{"text": None}, {"functionCall": None}]}},
    ],
    ids=str,
)
async def test_missing_fields_are_tolerated(candidate: dict[str, Any]) -> None:
    body = sse({"candidates": None}, {"candidates": []}, {"candidates": [candidate]})
    _, turn = await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert turn.text == ""


async def test_token_counts_that_are_null_count_as_zero() -> None:
    usage = {"promptTokenCount": 9, "cachedContentTokenCount": None, "thoughtsTokenCount": None}
    body = sse({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage})
    _, turn = await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())
    assert turn.usage == Usage(input_total=9, requests=1)


async def test_calls_without_id_get_their_own_and_go_back_without() -> None:
    body = GOOGLE.encode(Script(calls=[Call(""), Call("")]))
    recorder = Recorder(body, GOOGLE.encode(Script(text=["done"])))
    provider = GOOGLE.provider(recorder)
    turn = [event async for event in provider.stream(GOOGLE.request(USER))][-1].turn  # type: ignore[union-attr]
    first, second = turn.tool_calls
    assert first.id != second.id
    results = [ToolResult(c.id, c.name, c.id) for c in (second, first)]
    await play(provider, GOOGLE.request(USER, turn, *results))
    assert GOOGLE.results(recorder.body) == [("", first.id, False), ("", second.id, False)]


async def test_foreign_call_carries_the_stand_in_for_a_signature_only_where_one_is_checked() -> None:
    turn = Turn("elsewhere", "m", tool_calls=(ToolCall("a", "s", {}),), stop="tools")
    history = (USER, turn, ToolResult("a", "s", "one"))
    new = await sent_by(*history)
    assert new["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    old = await sent_by(*history, model="gemini-2.5-flash")
    assert "thoughtSignature" not in old["contents"][1]["parts"][0]


GOOGLE_ERRORS: list[tuple[int, dict[str, Any], type[errors.ProviderError], float | None]] = [
    (400, {"reason": "API_KEY_INVALID"}, errors.AuthFailed, None),
    (
        429,
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
        errors.RateLimited,
        34.5,
    ),
    (
        429,
        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]},
        errors.QuotaExhausted,
        None,
    ),
    (429, {"violations": [{"quotaId": "GenerateRequestsPerMinute"}]}, errors.RateLimited, None),
]


@pytest.mark.parametrize(("status", "detail", "kind", "wait"), GOOGLE_ERRORS, ids=str)
async def test_error_details_decide(
    status: int, detail: dict[str, Any], kind: type[errors.ProviderError], wait: float | None
) -> None:
    word = "INVALID_ARGUMENT" if status == 400 else "RESOURCE_EXHAUSTED"
    error = {"code": status, "message": "m", "status": word, "details": [detail]}
    response = httpx2.Response(status, json={"error": error})
    with pytest.raises(errors.ProviderError) as caught:
        await play(GOOGLE.provider(Recorder(response)), GOOGLE.request())
    assert type(caught.value) is kind
    assert caught.value.retry_after_s == wait


async def test_error_inside_a_stream_is_classified() -> None:
    body = GOOGLE.encode(Script(text=["half"], stop=""))
    body += sse({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})
    with pytest.raises(errors.ProviderUnavailable):
        await play(GOOGLE.provider(Recorder(body)), GOOGLE.request())


async def test_the_private_seam_of_the_sdk_is_still_there() -> None:
    """The raw stream is no public API: this fails first when an upgrade moves it."""
    import inspect

    from google.genai._api_client import BaseApiClient, HttpRequest, HttpResponse

    def parameters(function: object) -> list[str]:
        assert callable(function)
        return list(inspect.signature(function).parameters)[1:]

    built = ["http_method", "path", "request_dict", "http_options"]
    assert parameters(BaseApiClient._build_request) == built
    assert parameters(BaseApiClient._async_request) == ["http_request", "http_options", "stream"]
    assert "data" in inspect.signature(HttpRequest).parameters
    assert inspect.isasyncgenfunction(HttpResponse.async_segments)


def test_aiohttp_is_not_in_the_environment() -> None:
    """google-genai would switch its transport to it without being asked."""
    assert "aiohttp" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        __import__("aiohttp")


async def test_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://elsewhere.example")
    monkeypatch.setenv("GOOGLE_API_KEY", "key-of-the-platform")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    recorder = Recorder(GOOGLE.encode(Script(text=["x"])))
    await play(GOOGLE.provider(recorder), GOOGLE.request())
    sent = recorder.requests[0]
    assert sent.url.host == "generativelanguage.googleapis.com"
    assert sent.headers["x-goog-api-key"] == KEY
