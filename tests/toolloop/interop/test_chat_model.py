"""LangChain chat models as providers: ChatOpenAI over a real socket, and LangChain's own fakes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import langchain_core.exceptions as langchain_errors
import pytest
from langchain_core.language_models import (
    BaseChatModel,
    FakeListChatModel,
    FakeListLLM,
    FakeMessagesListChatModel,
    GenericFakeChatModel,
)
from langchain_core.messages import AIMessage, AIMessageChunk, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from pydantic import SecretStr

from tests.fake_provider import FakeProvider, running
from tests.later import later
from tests.toolloop.helpers import add
from tests.walked import each
from toolloop.errors import ConfigurationError, UnsupportedFeature
from toolloop.events import RunFinished, TextDelta, ToolArgumentsDelta, ToolCallStarted
from toolloop.interop.chat_model import LangChainProvider
from toolloop.interop.react import AgentError, ReActAgent
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.media import Media
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage, message_from_json
from toolloop.output import output_of
from toolloop.providers.base import ModelRequest
from toolloop.server_tools import WebSearch
from toolloop.tools import Toolset

if TYPE_CHECKING:
    import langchain_openai
else:
    langchain_openai = later("langchain_openai")
SMALLEST_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


@pytest.fixture
def server() -> Iterator[tuple[str, FakeProvider]]:
    with running() as found:
        yield found


def chat(url: str, model: str, **settings: Any) -> langchain_openai.ChatOpenAI:
    settings = {"stream_usage": True, "max_retries": 0, **settings}
    return langchain_openai.ChatOpenAI(model=model, base_url=url, api_key=SecretStr("sk-x"), **settings)


class Scripted(FakeMessagesListChatModel):
    """LangChain's fake that plays messages, with tools: it keeps what was bound and asked."""

    bound: list[dict[str, Any]] = []
    asked: list[list[Any]] = []

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        self.bound.append({"tools": tools, **settings})
        return self

    def _generate(self, messages: Any, *args: Any, **settings: Any) -> Any:
        self.asked.append(list(messages))
        return super()._generate(messages, *args, **settings)


def called(name: str, call_id: str = "c1", text: str = "", **arguments: Any) -> AIMessage:
    call = {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}
    return AIMessage(text, tool_calls=[call])


# --- over a real socket ---------------------------------------------------------------------------


async def test_agent_of_a_chat_model_calls_tools_streams_and_counts(server: tuple[str, FakeProvider]) -> None:
    url, fake = server
    bodies: list[dict[str, Any]] = []

    def said(body: dict[str, Any]) -> Any:
        bodies.append(body)
        if len(bodies) == 1:
            return [
                {"name": "add", "arguments": {"a": 2, "b": 3}},
                {"name": "add", "arguments": {"a": 4, "b": 5}},
            ]
        return "5 and 9."

    fake.replies["m"] = said
    async with ReActAgent(chat(url, "m"), tools=[add]) as agent:
        chunks = [chunk async for chunk in agent.astream("2+3 and 4+5?", text=True)]
        answer = chunks[-1]
        assert answer["output"] == "5 and 9."
        assert sorted(step.observation for step in answer["intermediate_steps"]) == ["5", "9"]
        assert "".join(c["text"] for c in chunks if "text" in c) == "5 and 9."
        usage = answer["usage"]
        assert (usage.requests, usage.input_total, usage.output_total) == (2, 200, 40)
        first, second = bodies
        assert first["tools"][0]["function"]["parameters"]["required"] == ["a", "b"]
        assert first["stream"] is True
        assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
        ids = [call["id"] for call in second["messages"][2]["tool_calls"]]
        assert [m["tool_call_id"] for m in second["messages"][3:]] == ids
        # It remembers, and asks again with the whole history.
        assert (await agent.ainvoke("Again?"))["output"] == "5 and 9."
        assert len(bodies[-1]["messages"]) == 7


def test_plain_form_works_too(server: tuple[str, FakeProvider]) -> None:
    agent = ReActAgent(chat(server[0], "fake-words5"), tools=[add])
    answer = agent.invoke("Say something")
    assert len(answer["output"].split()) == 5
    agent.close()


async def test_text_streams_word_by_word(server: tuple[str, FakeProvider]) -> None:
    agent = ReActAgent(chat(server[0], "fake-words6"))
    pieces = [c["text"] async for c in agent.astream("Say", text=True) if "text" in c]
    assert len(pieces) == 6


@pytest.mark.parametrize(
    ("model", "code", "retryable"),
    [
        ("fake-fail401", "auth_failed", False),
        ("fake-fail429", "rate_limited", True),
        ("fake-fail500", "provider_unavailable", True),
        ("fake-fail400", "bad_request", False),
        ("fake-fail404", "bad_request", False),
        ("fake-cut", "provider_unavailable", True),
    ],
)
async def test_errors_come_in_our_classes(
    server: tuple[str, FakeProvider], model: str, code: str, retryable: bool
) -> None:
    agent = ReActAgent(chat(server[0], model), limits=Limits(max_retries=0))
    with pytest.raises(AgentError) as caught:
        await agent.ainvoke("Say")
    assert (caught.value.error_code, caught.value.retryable) == (code, retryable)
    assert "sk-x" not in str(caught.value)


async def test_server_that_is_not_there_is_unavailable() -> None:
    agent = ReActAgent(chat("http://127.0.0.1:9/v1", "m"), limits=Limits(max_retries=0))
    with pytest.raises(AgentError) as caught:
        await agent.ainvoke("Say")
    assert caught.value.error_code == "provider_unavailable"


async def test_failed_call_is_tried_again_by_the_loop(server: tuple[str, FakeProvider]) -> None:
    url, fake = server
    said: list[Any] = [503, "Better."]
    fake.replies["m"] = lambda body: said.pop(0)
    agent = ReActAgent(chat(url, "m"), limits=Limits(max_retries=1, retry_min_s=0, retry_max_s=0))
    assert (await agent.ainvoke("Say"))["output"] == "Better."


@pytest.mark.parametrize(("ends", "stop"), [("length", "length"), ("content_filter", "filter")])
async def test_reason_of_the_end_is_normalised(
    server: tuple[str, FakeProvider], ends: str, stop: str
) -> None:
    provider = LangChainProvider(chat(server[0], f"fake-ends_{ends}"))
    events = [e async for e in provider.stream(ModelRequest("m", "", [UserMessage("x")]))]
    assert events[-1].turn.stop == stop  # type: ignore[union-attr]


async def test_options_tools_and_choices_reach_the_server(server: tuple[str, FakeProvider]) -> None:
    url, fake = server
    bodies: list[dict[str, Any]] = []
    fake.replies["m"] = lambda body: bodies.append(body) or "ok"  # type: ignore[func-returns-value]
    model = chat(url, "m", temperature=0.9, max_completion_tokens=50)
    provider = LangChainProvider(model)
    specs = Toolset([add]).specs()
    for choice in ("auto", "required", "none"):
        request = ModelRequest(
            "m",
            "Be brief.",
            [UserMessage("x")],
            specs,
            choice,
            max_output_tokens=20,
            options={"temperature": 0.1, "seed": 7, "stop": ["END"], "parallel_tool_calls": False},
        )
        async for _ in provider.stream(request):
            pass
    assert [body.get("tool_choice") for body in bodies] == [None, "required", "none"]
    for body in bodies:
        assert (body["temperature"], body["seed"], body["stop"]) == (0.1, 7, ["END"])
        assert body["max_completion_tokens"] == 20
        assert body["parallel_tool_calls"] is False
    assert (model.temperature, model.max_tokens) == (0.9, 50)


async def test_pictures_go_along(server: tuple[str, FakeProvider]) -> None:
    url, fake = server
    bodies: list[dict[str, Any]] = []
    fake.replies["m"] = lambda body: bodies.append(body) or "ok"  # type: ignore[func-returns-value]
    picture = Media.from_bytes(SMALLEST_PNG, "image/png")
    message = UserMessage("What is it?", parts=(picture,))
    async for _ in LangChainProvider(chat(url, "m")).stream(ModelRequest("m", "", [message])):
        pass
    (said,) = bodies[0]["messages"]
    assert [block["type"] for block in said["content"]] == ["image_url", "text"]


# --- what crosses ---------------------------------------------------------------------------------


async def test_model_that_does_not_stream_works_and_sees_langchains_messages() -> None:
    model = Scripted(
        responses=[called("add", text="I add.", a=2, b=3), AIMessage("It is 5.")], bound=[], asked=[]
    )
    answer = await ReActAgent(model, tools=[add], system="Be brief.").ainvoke("2+3?")
    assert answer["output"] == "It is 5."
    (step,) = answer["intermediate_steps"]
    assert (step.thought, step.input, step.observation) == ("I add.", {"a": 2, "b": 3}, "5")
    assert model.bound[0]["tools"][0]["function"]["name"] == "add"
    system, question, made, result = model.asked[1]
    assert isinstance(system, SystemMessage)
    assert (system.text, question.text) == ("Be brief.", "2+3?")
    assert made.tool_calls[0]["id"] == "c1"
    assert isinstance(result, ToolMessage)
    assert (result.content, result.tool_call_id, result.status) == ("5", "c1", "success")


async def test_failed_call_and_unreadable_arguments_are_told() -> None:
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"name": "add", "args": '{"a": 1,', "id": "c1", "error": "x", "type": "invalid_tool_call"}
        ],
    )
    model = Scripted(responses=[broken, AIMessage("Sorry.")], bound=[], asked=[])
    answer = await ReActAgent(model, tools=[add]).ainvoke("2+3?")
    assert answer["intermediate_steps"][0].is_error
    assert model.asked[1][-1].status == "error"


class Pieces(GenericFakeChatModel):
    """A model whose stream consists of the chunks it is given."""

    chunks: list[AIMessageChunk]
    messages: Any = iter(())

    def _stream(self, *args: Any, **settings: Any) -> Any:
        for chunk in self.chunks:
            yield ChatGenerationChunk(message=chunk)

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        return self


def piece(args: str | None, index: int | None, **more: Any) -> AIMessageChunk:
    chunk: Any = {"name": more.get("name"), "args": args, "id": more.get("id"), "index": index}
    chunk["type"] = "tool_call_chunk"
    return AIMessageChunk(content="", tool_call_chunks=[chunk])


PIECES: dict[str, list[AIMessageChunk]] = {
    "by index": [
        piece('{"a"', 0, name="add", id="x"),
        piece(": 1}", 0),
        piece('{"b"', 1, name="add", id="y"),
        piece(": 2}", 1),
    ],
    "mixed": [
        piece("", 0, name="add", id="x"),
        piece("", 1, name="add", id="y"),
        piece('{"b": ', 1),
        piece('{"a": 1}', 0),
        piece("2}", 1),
    ],
    "whole, without places": [
        piece('{"a": 1}', None, name="add", id="x"),
        piece('{"b": 2}', None, name="add", id="y"),
    ],
    "without ids": [piece('{"a": 1}', 0, name="add"), piece('{"b": 2}', 1, name="add")],
    "without ids and places": [piece('{"a": 1}', None, name="add"), piece('{"b": 2}', None, name="add")],
}


@pytest.mark.parametrize("chunks", PIECES.values(), ids=PIECES)
async def test_calls_are_put_together_from_their_pieces(chunks: list[AIMessageChunk]) -> None:
    provider = LangChainProvider(Pieces(chunks=[*chunks, AIMessageChunk(content="", chunk_position="last")]))
    request = ModelRequest("m", "", [UserMessage("x")], Toolset([add]).specs())
    events = [event async for event in provider.stream(request)]
    turn = events[-1].turn  # type: ignore[union-attr]
    assert [call.arguments for call in turn.tool_calls] == [{"a": 1}, {"b": 2}]
    assert turn.stop == "tools"
    started = [e for e in events if isinstance(e, ToolCallStarted)]
    assert [(e.call_id, e.name) for e in started] == [(c.id, "add") for c in turn.tool_calls]
    for call in turn.tool_calls:
        streamed = "".join(
            e.delta for e in events if isinstance(e, ToolArgumentsDelta) and e.call_id == call.id
        )
        assert streamed == call.raw


async def test_truncated_arguments_are_never_completed() -> None:
    provider = LangChainProvider(Pieces(chunks=[piece('{"a": 1, "b": 2', 0, name="add", id="x")]))
    request = ModelRequest("m", "", [UserMessage("x")], Toolset([add]).specs())
    events = [event async for event in provider.stream(request)]
    (call,) = events[-1].turn.tool_calls  # type: ignore[union-attr]
    assert call.arguments is None
    assert call.problem


async def test_reasoning_goes_back_to_its_model_word_for_word_after_a_reload() -> None:
    thought: list[Any] = [{"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "s1"}}]
    chunks = [
        AIMessageChunk(content=[*thought, {"type": "text", "text": "I add."}]),
        piece('{"a": 2, "b": 3}', 0, name="add", id="x"),
    ]
    provider = LangChainProvider(Pieces(chunks=chunks))
    request = ModelRequest("m", "", [UserMessage("x")], Toolset([add]).specs())
    events = [event async for event in provider.stream(request)]
    turn = events[-1].turn  # type: ignore[union-attr]
    assert (turn.reasoning, turn.text) == ("Hm.", "I add.")
    stored = message_from_json(json.loads(json.dumps(turn.to_json())))
    assert isinstance(stored, Turn)
    history: list[ModelMessage] = [UserMessage("x"), stored, ToolResult("x", "add", "5")]
    sent = provider._messages(ModelRequest("m", "", history))
    assert sent[1].content[0] == thought[0]
    assert sent[1].tool_calls[0]["args"] == {"a": 2, "b": 3}


async def test_model_without_tool_calls_works_with_a_planner() -> None:
    plan = '{"calls": [{"tool": "add", "task": "2 and 3"}], "answer": ""}'
    done = '{"calls": [], "answer": "It is 5."}'
    model = FakeListChatModel(responses=[plan, '{"a": 2, "b": 3}', done])
    answer = await ReActAgent(model, tools=[add], planner="manual").ainvoke("2+3?")
    assert answer["output"] == "It is 5."
    assert [step.observation for step in answer["intermediate_steps"]] == ["5"]


async def test_form_of_an_answer_is_asked_for_in_words() -> None:
    model = Scripted(responses=[AIMessage('{"value": [1, 2]}')], bound=[], asked=[])
    provider = LangChainProvider(model)
    events = [
        event
        async for event in run_loop(
            LoopInput(
                model=provider.model,
                system="",
                history=[UserMessage("x")],
                toolset=Toolset(),
                output=output_of(list[int]),
            ),
            LoopServices(provider=provider),
        )
    ]
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.output == [1, 2]
    assert "JSON Schema" in model.asked[0][0].text


async def test_server_tools_are_refused() -> None:
    provider = LangChainProvider(Scripted(responses=[], bound=[], asked=[]))
    request = ModelRequest("m", "", [UserMessage("x")], server_tools=(WebSearch(),))
    with pytest.raises(UnsupportedFeature):
        await anext(provider.stream(request))


async def test_price_is_known_for_a_providers_own_model_only() -> None:
    own = langchain_openai.ChatOpenAI(model="gpt-5", api_key=SecretStr("sk-x"))
    assert LangChainProvider(own).profile.prices
    assert not LangChainProvider(chat("http://127.0.0.1:9/v1", "gpt-5")).profile.prices


# --- what is unfit --------------------------------------------------------------------------------


def hosted() -> langchain_openai.ChatOpenAI:
    return chat("http://127.0.0.1:9/v1", "gpt-5")


UNFIT: dict[str, Callable[[], Any]] = {
    "bound tools": lambda: hosted().bind_tools([]),
    "bound settings": lambda: hosted().bind(stop=["x"]),
    "structured": lambda: hosted().with_structured_output({"title": "a", "type": "object", "properties": {}}),
    "retrying": lambda: hosted().with_retry(),
    "a chain": lambda: hosted() | RunnableLambda(lambda message: message),
    "a function": lambda: RunnableLambda(lambda message: message),
    "a text model": lambda: FakeListLLM(responses=["x"]),
    "a message": lambda: AIMessage("x"),
    "its class": lambda: langchain_openai.ChatOpenAI,
    "a name": lambda: "openai:gpt-5",
    "nothing": lambda: None,
    "a number": lambda: 5,
    "an object": object,
}
"""By name; each made when it is tried, because every process of a run reads this module."""


@each("what", UNFIT)
def test_what_is_unfit_is_refused_at_once(what: str) -> None:
    with pytest.raises(ConfigurationError):
        ReActAgent(UNFIT[what](), tools=[add])
    with pytest.raises(ConfigurationError):
        ReActAgent(UNFIT[what](), "gpt-5", tools=[add])


def test_model_that_cannot_call_tools_is_refused_at_once_when_it_is_given_some() -> None:
    model = FakeListChatModel(responses=["Hi"])
    with pytest.raises(ConfigurationError, match="planner='manual'"):
        ReActAgent(model, tools=[add])
    assert ReActAgent(model).invoke("Hi")["output"] == "Hi"


def test_chat_model_names_itself() -> None:
    with pytest.raises(ConfigurationError, match="leave model out"):
        ReActAgent(FakeListChatModel(responses=["Hi"]), "gpt-5")
    assert isinstance(FakeListChatModel(responses=[]), BaseChatModel)


async def test_text_deltas_are_the_answer() -> None:
    provider = LangChainProvider(GenericFakeChatModel(messages=iter([AIMessage("One two three.")])))
    events = [e async for e in provider.stream(ModelRequest("m", "", [UserMessage("x")]))]
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    assert text == "One two three." == events[-1].turn.text  # type: ignore[union-attr]


class Status(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}, key sk-abcdefghijkl")
        self.status_code = status_code


class Failing(FakeListChatModel):
    """A model whose integration raises what it is given."""

    error: Any = None
    responses: list[str] = []

    async def _astream(self, *args: Any, **settings: Any) -> Any:
        if self.error is not None:
            raise self.error
        yield ChatGenerationChunk(message=AIMessageChunk(content=""))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (langchain_errors.ModelRateLimitError("slow down"), "rate_limited"),
        (langchain_errors.ModelAuthenticationError("no"), "auth_failed"),
        (langchain_errors.ModelTimeoutError("late"), "provider_unavailable"),
        (langchain_errors.ContextOverflowError("long"), "context_too_long"),
        (langchain_errors.ModelNotFoundError("no such model"), "bad_request"),
        (httpx.ConnectError("refused"), "provider_unavailable"),
        (TimeoutError("late"), "provider_timeout"),
        (ConnectionResetError("gone"), "provider_unavailable"),
        (Status(429), "rate_limited"),
        (Status(403), "auth_failed"),
        (KeyError("a mistake of the integration"), "internal_error"),
    ],
    ids=repr,
)
async def test_errors_of_any_integration_come_in_our_classes(error: Exception, code: str) -> None:
    agent = ReActAgent(Failing(error=error), limits=Limits(max_retries=0))
    with pytest.raises(AgentError) as caught:
        await agent.ainvoke("Say")
    assert caught.value.error_code == code
    assert "abcdefghijkl" not in str(caught.value)
