"""Tools both ways, against the installed LangChain."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as lc_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

from tests.patience import PATIENCE_S
from tests.toolloop.helpers import add, broken, converse, wait
from toolloop.deferred import ParkCall
from toolloop.interop.langchain import from_langchain, to_langchain
from toolloop.media import Media
from toolloop.providers.scripted import call, says
from toolloop.tools import FromContext, Tool, ToolDefinitionError, ToolError, ToolOutput, tool

ROOT = Path(__file__).resolve().parents[3]


@tool(side_effects=True, tags=("shop",))
async def order(article: str, tenant: Annotated[str, FromContext("tenant")], pieces: int = 1) -> Any:
    """Order an article.

    Args:
        article: its name.
        pieces: how many.
    """
    if pieces < 1:
        raise ToolError("Order at least one.")
    return ToolOutput(f"Ordered {pieces} {article}.", {"for": tenant, "pieces": pieces})


def asked(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": "c1", "type": "tool_call"}


# Ours to LangChain.


async def test_content_and_payload_become_content_and_artifact() -> None:
    made = to_langchain(order, context={"tenant": "acme"})
    assert isinstance(made, StructuredTool)
    message = await made.ainvoke(asked("order", article="pen", pieces=2))
    assert isinstance(message, ToolMessage)
    assert message.content == "Ordered 2 pen."
    assert message.artifact == {"for": "acme", "pieces": 2}
    assert message.tool_call_id == "c1"
    assert made.tags == ["shop"]


def test_the_model_sees_our_schema_and_nothing_injected() -> None:
    shown = convert_to_openai_tool(to_langchain(order, context={"tenant": "acme"}))["function"]
    assert shown["description"] == "Order an article."
    assert set(shown["parameters"]["properties"]) == {"article", "pieces"}
    assert shown["parameters"]["required"] == ["article"]
    assert shown["parameters"]["properties"]["pieces"]["description"] == "how many."


def test_an_async_tool_can_be_called_from_plain_code() -> None:
    made = to_langchain(order, context={"tenant": "acme"})
    assert made.invoke({"article": "pen"}) == "Ordered 1 pen."
    assert made.run({"article": "ink"}) == "Ordered 1 ink."


async def test_a_plain_call_inside_an_event_loop_works_too() -> None:
    assert to_langchain(add).invoke({"a": 1, "b": 2}) == "3"


async def test_a_plain_call_from_within_the_portal_is_an_error_and_no_deadlock() -> None:
    inner = to_langchain(add)

    async def outer() -> str:
        return str(inner.invoke({"a": 1, "b": 2}))

    nesting = to_langchain(Tool("outer", "Call.", {"type": "object"}, outer), handle_errors=False)
    with pytest.raises(ToolException, match="ConfigurationError"):
        await asyncio.wait_for(asyncio.to_thread(nesting.invoke, {}), 10)


@pytest.mark.parametrize(
    ("made", "arguments", "words"),
    [
        (order, {"article": "pen", "pieces": 0}, "Order at least one."),
        (order, {"article": 5}, "expected string, got integer 5"),
        (order, {"article": "pen", "tenant": "other"}, "set by the application"),
        (order, {}, "required and missing"),
        (broken, {}, "internal error (RuntimeError)"),
    ],
)
async def test_failures_are_tool_exceptions(made: Tool, arguments: Any, words: str) -> None:
    context = {"tenant": "acme"}
    strict = to_langchain(made, context=context, handle_errors=False)
    with pytest.raises(ToolException) as caught:
        await strict.ainvoke(arguments)
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)
    told = await to_langchain(made, context=context).ainvoke(asked(made.name, **arguments))
    assert (told.status, words in told.content) == ("error", True)


async def test_timeouts_and_output_limits_hold_in_langchain_too() -> None:
    slow = to_langchain(wait, timeout_s=0.1)
    short = to_langchain(Tool("wait", "Wait.", {"type": "object"}, _forever, timeout_s=0.1))
    async with asyncio.timeout(PATIENCE_S):
        assert "did not answer within 0.1 s" in (await short.ainvoke(asked("wait"))).content
    assert slow.name == "wait"
    long = Tool("long", "Say much.", {"type": "object"}, lambda: "x" * 1000)
    message = await to_langchain(long, max_output_chars=100).ainvoke(asked("long"))
    assert "cut: the first 100 of 1000" in message.content


async def _forever() -> None:
    await asyncio.Event().wait()


async def test_what_needs_a_person_is_not_run() -> None:
    ran: list[str] = []
    guarded = Tool("pay", "Pay.", {"type": "object"}, lambda: ran.append("x"), needs_approval=True)
    message = await to_langchain(guarded).ainvoke(asked("pay"))
    assert (message.status, ran) == ("error", [])
    assert "a person must approve it" in message.content
    await to_langchain(guarded, approval_elsewhere=True).ainvoke(asked("pay"))
    assert ran == ["x"]

    def park() -> None:
        raise ParkCall(reason="who pays?")

    parking = to_langchain(Tool("park", "Park.", {"type": "object"}, park))
    assert "who pays?" in (await parking.ainvoke(asked("park"))).content
    with pytest.raises(ToolDefinitionError, match="from outside"):
        to_langchain(Tool("ask", "Ask.", {"type": "object"}, park, external=True))


def test_argument_names_that_langchain_keeps_are_refused() -> None:
    schema = {"type": "object", "properties": {"config": {"type": "string"}}}
    with pytest.raises(ToolDefinitionError, match="'config'"):
        to_langchain(Tool("set_up", "Set up.", schema, lambda config: config))


def test_our_tools_work_in_langchains_agent() -> None:
    from langchain.agents import create_agent

    class Model(GenericFakeChatModel):
        seen: list[Any] = []

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            self.seen.extend(convert_to_openai_tool(t)["function"]["name"] for t in tools)
            return self

    script = [
        AIMessage("", tool_calls=[asked("order", article="pen", pieces=0)]),
        AIMessage("", tool_calls=[asked("order", article="pen", pieces=3)]),
        AIMessage("Three pens are on their way."),
    ]
    model = Model(messages=iter(script))
    agent = create_agent(model, tools=[to_langchain(order, context={"tenant": "acme"})])
    end = agent.invoke({"messages": [("user", "Three pens")]})
    failed, done = (m for m in end["messages"] if isinstance(m, ToolMessage))
    assert (failed.status, failed.content) == ("error", "Order at least one.")
    assert done.artifact == {"for": "acme", "pieces": 3}
    assert end["messages"][-1].content == "Three pens are on their way."
    assert "order" in model.seen


# LangChain's to ours.


class Search(BaseModel):
    """Arguments of a search."""

    query: str = Field(description="What to look for.", min_length=2)
    kind: Literal["web", "news"] = "web"
    limit: int = Field(default=3, ge=1, le=10)


@lc_tool(args_schema=Search, response_format="content_and_artifact")
def search(query: str, kind: str = "web", limit: int = 3) -> Any:
    """Search the web."""
    found = [Document(page_content=f"{query} {n}", metadata={"kind": kind}) for n in range(limit)]
    return f"{limit} documents", found


async def test_the_loop_runs_a_langchain_tool_and_repairs_its_arguments() -> None:
    made = from_langchain(search, side_effects=False)
    assert made.parameters["properties"]["query"]["description"] == "What to look for."
    assert (made.side_effects, made.idempotent) == (False, True)
    dialogue = await converse(
        [
            says("", call("search", query="duty", limit=11)),
            says("", call("search", query="duty", limit=2)),
            says("Done."),
        ],
        made,
    )
    wrong, right = dialogue.told()
    assert (wrong.error_code, right.content) == ("invalid_arguments", "2 documents")
    assert "at most 10" in wrong.content
    assert right.payload[1]["page_content"] == "duty 1"
    assert right.payload[1]["metadata"] == {"kind": "web"}


async def test_injected_arguments_are_hidden_and_filled_in() -> None:
    seen: list[Any] = []

    @lc_tool
    async def save(
        text: str,
        owner: Annotated[str, InjectedToolArg],
        call_id: Annotated[str, InjectedToolCallId],
        config: RunnableConfig,
    ) -> str:
        """Save a text."""
        seen.append((text, owner, call_id, isinstance(config, dict)))
        return "saved"

    made = from_langchain(save)
    assert set(made.parameters["properties"]) == {"text"}
    dialogue = await converse([says("", call("save", text="a")), says("ok")], made, context={"owner": "ann"})
    (result,) = dialogue.told()
    assert result.content == "saved"
    assert seen == [("a", "ann", result.call_id, True)]
    missing = await converse([says("", call("save", text="a")), says("ok")], made)
    assert missing.told()[0].error_code == "exception"


async def test_a_model_cannot_set_an_injected_argument() -> None:
    @lc_tool
    def whoami(
        call_id: Annotated[str, InjectedToolCallId], owner: Annotated[str, InjectedToolArg] = "nobody"
    ) -> str:
        """Tell the owner."""
        return owner

    made = from_langchain(whoami)
    script = [says("", call("whoami", owner="root"), call("whoami", call_id="x"), call("whoami")), says("ok")]
    for context, expected in (({"owner": "ann"}, "ann"), ({}, "nobody")):
        first, second, third = (await converse(script, made, context=context)).told()
        assert first.content == "owner is set by the application: leave it out."
        assert second.content == "call_id is set by the application: leave it out."
        assert third.content == expected


async def test_langchain_errors_are_told_to_the_model_and_others_are_not() -> None:
    def failing(how: str) -> str:
        """Fail."""
        if how == "told":
            raise ToolException("The index is being rebuilt.")
        raise RuntimeError("password=hunter2")

    fails = StructuredTool.from_function(func=failing, name="fails")
    handled = StructuredTool.from_function(func=failing, name="handled", handle_tool_error=True)
    dialogue = await converse(
        [
            says("", call("fails", how="told"), call("handled", how="told"), call("fails", how="x")),
            says("ok"),
        ],
        from_langchain(fails),
        from_langchain(handled),
    )
    told, also, hidden = dialogue.told()
    assert told.content == also.content == "The index is being rebuilt."
    assert (told.error_code, also.error_code, hidden.error_code) == ("tool_error", "tool_error", "exception")
    assert "hunter2" not in hidden.content


async def test_a_tool_without_an_async_form_does_not_block_the_loop() -> None:
    threads: set[str] = set()
    together = threading.Barrier(4, timeout=PATIENCE_S)

    class Slow(BaseTool):
        name: str = "slow"
        description: str = "Take a while."

        def _run(self, n: int) -> str:
            threads.add(threading.current_thread().name)
            together.wait()  # Broken, and so an error, unless four are here at once.
            return str(n)

    made = from_langchain(Slow())
    script = [says("", *(call("slow", n=n) for n in range(4))), says("ok")]
    dialogue = await converse(script, made)
    assert [result.content for result in dialogue.told()] == ["0", "1", "2", "3"]
    assert threading.current_thread().name not in threads


async def test_schemas_given_as_json_and_blocks_of_content_work() -> None:
    schema = {
        "title": "Look",
        "type": "object",
        "properties": {"told": {"type": "string"}, "self": {"type": "integer"}},
        "required": ["told"],
    }

    async def look(**arguments: Any) -> Any:
        return [{"type": "text", "text": arguments["told"]}, {"type": "image", "base64": "x"}]

    raw = StructuredTool(name="look", description="Look.", args_schema=schema, coroutine=look)
    made = from_langchain(raw, name="look_at")
    dialogue = await converse([says("", call("look_at", told="a wall")), says("ok")], made)
    assert dialogue.told()[0].content == "a wall\n[image: not shown]"
    assert "title" not in made.parameters


async def test_images_are_shown_where_that_was_asked_for() -> None:
    picture = Media.from_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 20)
    ours = Tool("look", "Look.", {"type": "object"}, lambda: ToolOutput("A wall.", parts=(picture,)))
    theirs = to_langchain(ours)
    message = await theirs.ainvoke(asked("look"))
    assert message.content_blocks[1]["type"] == "image"
    assert message.content_blocks[1]["base64"] == picture.data
    for images, expected in ((True, ("A wall.", (picture,))), (False, ("A wall.\n[image: not shown]", ()))):
        dialogue = await converse([says("", call("look")), says("ok")], from_langchain(theirs, images=images))
        (result,) = dialogue.told()
        assert (result.content, result.parts) == expected


async def test_a_tool_goes_there_and_back_unchanged() -> None:
    back = from_langchain(to_langchain(order, context={"tenant": "acme"}))
    assert back.parameters["properties"] == order.parameters["properties"]
    dialogue = await converse([says("", call("order", article="pen", pieces=4)), says("ok")], back)
    (result,) = dialogue.told()
    assert (result.content, result.payload) == ("Ordered 4 pen.", {"for": "acme", "pieces": 4})


async def test_a_langgraph_command_is_refused() -> None:
    from langgraph.types import Command

    @lc_tool
    def jump() -> Any:
        """Jump."""
        return Command(goto="elsewhere")

    dialogue = await converse([says("", call("jump")), says("ok")], from_langchain(jump))
    assert "LangGraph" in dialogue.told()[0].content


def test_what_is_no_langchain_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="isn't a LangChain tool"):
        from_langchain(object())  # type: ignore[arg-type]


def test_without_langchain_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.path.insert(0, 'platform'); sys.modules['langchain_core'] = None\n"
        "from toolloop.interop.langchain import to_langchain\n"
        "from toolloop.tools import tool\n"
        "@tool\n"
        "def f(a: int) -> str:\n    'Do.'\n    return ''\n"
        "try:\n    to_langchain(f)\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("ConfigurationError LangChain is not installed")
    assert "requirements/langchain.txt" in done.stdout
