"""An agent in the manner of ReAct and LangChain's executors, whose engine is the loop.

Thought, action, observation: the thought is what the model says before it calls, the action is a call, native or made
by ``planner_executor`` for models that have none. Limits, checks, retries and approvals are the loop's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self

from toolloop.client import Client
from toolloop.client_options import RunOptions
from toolloop.deferred import Decision
from toolloop.errors import ConfigurationError, ToolloopError
from toolloop.events import Event, StepReset, TextDelta, ToolFinished, ToolRunning
from toolloop.interop.chat_model import LangChainProvider, provider_of
from toolloop.interop.memory import BufferMemory, Memory
from toolloop.interop.portal import iterate_in_portal, run_in_portal
from toolloop.interop.steps import AgentExchange, AgentStep
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, UserMessage
from toolloop.planner_executor import Mode, PlannerExecutor
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile
from toolloop.tools.tool import Tool, tool
from toolloop.tools.toolset import Toolset

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["REACT_SYSTEM", "AgentError", "AgentStep", "ReActAgent"]

REACT_SYSTEM = (
    "Answer the question as well as you can. Before each tool call, say in one sentence what you want to find out and "
    "why. Look at what a tool returned before you decide what to do next. When you know the answer, give it without "
    "calling tools."
)


class AgentError(ToolloopError):
    """The run failed.

    Attributes:
        error_code: of the run, such as ``rate_limited``.
        retryable: whether asking again may help.
    """

    code = "agent_failed"

    def __init__(self, message: str, error_code: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.error_code, self.retryable = error_code, retryable


class ReActAgent:
    """Answers questions with tools, and remembers.

    Belongs to one event loop, as its provider does. ``invoke`` and ``stream`` run in a loop of their own thread: use
    them or their async forms, not both with one provider.

    Args:
        provider: where turns come from, and ``aclose`` closes it; a LangChain chat model, which knows its own name and
            stays open; or a ``Client``, which knows its model, its tools and the rest, and stays open.
        model: bare model name of a provider.
        tools: ours, LangChain's, or plain functions with type hints and a docstring; or a toolset.
        memory: of earlier exchanges; a new ``BufferMemory`` when None.
        system: system prompt; ``REACT_SYSTEM``, or the client's own, when None.
        planner: for a model without tool calling of its own, how it is made to write JSON; see ``PlannerExecutor``.
        limits: of each question; the client's, or the common ones, when None.
        context: given to tools as ``ToolContext.data``.
        options: settings that only some models know.

    Raises:
        ConfigurationError: a provider without a model, a client together with what is the client's, a chat model that
            cannot call tools (without ``planner``), or anything else, a chain or a model's name say.
    """

    def __init__(
        self,
        provider: Provider | Client | BaseChatModel,
        model: str = "",
        tools: Iterable[Any] = (),
        *,
        memory: Memory | None = None,
        system: str | None = None,
        planner: Mode | None = None,
        limits: Limits | None = None,
        context: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(provider, Client) and (model or planner or tools != ()):
            raise ConfigurationError("model, tools and planner come from the client: leave them out")
        self._toolset = tools if isinstance(tools, Toolset) else Toolset(map(_tool, tools))
        self._profile: Profile | None = None
        if not isinstance(provider, Client):
            chat_model = provider_of(provider)
            if chat_model is not None:
                provider, model = self._of_chat_model(chat_model, model, planner)
            provider = _checked(provider, model)
            if planner:
                provider = PlannerExecutor(provider, mode=planner)
        self._provider: Provider | Client = provider
        self._model, self._system = model, system
        self.memory: Memory = BufferMemory() if memory is None else memory
        self._limits, self._context, self._options = limits, context, options
        self._parked: AgentExchange | None = None
        self._is_running = False

    def _of_chat_model(
        self, provider: LangChainProvider, model: str, planner: Mode | None
    ) -> tuple[Provider, str]:
        if model:
            raise ConfigurationError("the chat model knows its own name: leave model out")
        if len(self._toolset) and not provider.calls_tools and not planner:
            raise ConfigurationError(
                f"{provider.model} can't call tools in LangChain: set planner='manual', or pass another "
                f"chat model"
            )
        self._profile = provider.profile
        return provider, provider.model

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the provider; a client stays open."""
        if not isinstance(self._provider, Client):
            await self._provider.aclose()

    def close(self) -> None:
        """Close the provider after ``invoke`` or ``stream``."""
        run_in_portal(self.aclose())

    async def ainvoke(self, question: str | Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question.

        Args:
            question: the text, or a mapping with it under "input".

        Returns:
            ``input``, ``output`` (the answer), ``intermediate_steps`` (a list of ``AgentStep``), ``status`` ("completed"
            or "parked"), ``limit`` (the field of ``Limits`` that was met, or ""), ``usage`` of all model turns, and
            ``pending``: calls that wait for a decision; see ``aresume``.

        Raises:
            AgentError: the run failed; the memory is as it was.
            ConfigurationError: an earlier question still waits for decisions, or is being answered.
        """
        exchange = self._begun(question)
        async with aclosing(self._chunks(exchange, {}, text=False)) as chunks:
            async for _ in chunks:
                pass
        return _answer(exchange)

    async def aresume(self, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Go on with a parked question.

        Args:
            decisions: by call id.

        Returns:
            As ``ainvoke``.
        """
        if self._parked is None:
            raise ConfigurationError("no question is waiting for a decision")
        exchange = self._parked
        async with aclosing(self._chunks(exchange, decisions, text=False)) as chunks:
            async for _ in chunks:
                pass
        return _answer(exchange)

    async def astream(
        self, question: str | Mapping[str, Any], *, text: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Answer a question and tell what happens.

        Args:
            question: as for ``ainvoke``.
            text: tell the pieces of what the model writes as well.

        Yields:
            ``{"actions": [step]}`` when a call begins, ``{"steps": [step]}`` when it has ended, with ``text``
            ``{"text": piece}`` and ``{"reset": reason}`` (the pieces of this turn are void), and as the last what
            ``ainvoke`` returns.

        Raises:
            AgentError, ConfigurationError: as ``ainvoke``.
        """
        exchange = self._begun(question)
        async with aclosing(self._chunks(exchange, {}, text=text)) as chunks:
            async for chunk in chunks:
                yield chunk
        yield _answer(exchange)

    def invoke(self, question: str | Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question from plain code; see ``ainvoke``."""
        return run_in_portal(self.ainvoke(question))

    def resume(self, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Go on with a parked question from plain code; see ``aresume``."""
        return run_in_portal(self.aresume(decisions))

    def stream(self, question: str | Mapping[str, Any], *, text: bool = False) -> Iterator[dict[str, Any]]:
        """Answer a question from plain code and tell what happens; see ``astream``."""
        return iterate_in_portal(self.astream(question, text=text))

    def _begun(self, question: str | Mapping[str, Any]) -> AgentExchange:
        if self._parked is not None:
            raise ConfigurationError("the last question is waiting for decisions: call resume first")
        text = question if isinstance(question, str) else question.get("input")
        if not isinstance(text, str):
            raise ConfigurationError("a question is a string, or a mapping with one under 'input'")
        return AgentExchange([UserMessage(text)])

    async def _chunks(
        self, exchange: AgentExchange, decisions: Mapping[str, Decision], *, text: bool
    ) -> AsyncGenerator[dict[str, Any], None]:
        if self._is_running:
            raise ConfigurationError(
                "the agent is answering another question: its memory takes one at a time"
            )
        self._is_running = True
        try:
            stream = self._events(exchange, decisions)
            async with aclosing(stream) as events:
                async for event in events:
                    exchange.take(event)
                    chunk = _chunk(exchange, event, text=text)
                    if chunk:
                        yield chunk
        finally:
            self._is_running = False
        self._ended(exchange)

    def _events(
        self, exchange: AgentExchange, decisions: Mapping[str, Decision]
    ) -> AsyncGenerator[Event, None]:
        history = [*self.memory.load(), *exchange.messages]
        if isinstance(self._provider, Client):
            return self._client_events(self._provider, history, decisions)
        return run_loop(
            LoopInput(
                model=self._model,
                system=REACT_SYSTEM if self._system is None else self._system,
                history=history,
                toolset=self._toolset,
                limits=self._limits or Limits(),
                context=self._context,
                options=self._options,
                first_step=exchange.turns,
                usage=exchange.usage,
                decisions=decisions,
            ),
            LoopServices(provider=self._provider, profile=self._profile),
        )

    async def _client_events(
        self, client: Client, history: list[ModelMessage], decisions: Mapping[str, Decision]
    ) -> AsyncGenerator[Event, None]:
        settings: RunOptions = {"decisions": decisions}
        if self._system is not None:
            settings["system"] = self._system
        if self._limits is not None:
            settings["limits"] = self._limits
        if self._context is not None:
            settings["context"] = self._context
        if self._options is not None:
            settings["options"] = self._options
        async with client.stream(history, **settings) as stream:
            async for event in stream:
                yield event

    def _ended(self, exchange: AgentExchange) -> None:
        end = exchange.end
        if end is None:
            raise AgentError("The run stopped without an end event.", "internal", retryable=True)
        if end.status == "parked":
            self._parked = exchange
            return
        self._parked = None
        if end.status != "completed":
            raise AgentError(
                end.error_message or f"The run was {end.status}.",
                end.error_code or end.status,
                retryable=end.retryable,
            )
        self.memory.save(exchange.messages)


def _checked(given: Any, model: str) -> Provider:
    """Return what was given if turns can come from it.

    Raises:
        ConfigurationError: it is no provider, or no model is named.
    """
    parts = (getattr(given, "stream", None), getattr(given, "aclose", None))
    if isinstance(given, type) or not all(map(callable, parts)) or not hasattr(given, "name"):
        shown = repr(given) if isinstance(given, str) else type(given).__name__
        raise ConfigurationError(
            f"{shown} isn't a provider: pass one from make_provider(), a Client, or a LangChain chat model"
        )
    if not model:
        raise ConfigurationError("pass the model to use with this provider")
    made: Provider = given
    return made


def _chunk(exchange: AgentExchange, event: Event, *, text: bool) -> dict[str, Any]:
    if isinstance(event, ToolRunning):
        return {"actions": [exchange.step(event.call)]}
    if isinstance(event, ToolFinished):
        return {"steps": [exchange.steps[-1]]}
    if text and isinstance(event, TextDelta):
        return {"text": event.text}
    if text and isinstance(event, StepReset):
        return {"reset": event.reason}
    return {}


def _answer(exchange: AgentExchange) -> dict[str, Any]:
    end, question = exchange.end, exchange.messages[0]
    if end is None or not isinstance(question, UserMessage):
        raise AgentError("The run stopped without an end event.", "internal", retryable=True)
    return {
        "input": question.text,
        "output": end.text,
        "intermediate_steps": list(exchange.steps),
        "status": end.status,
        "limit": end.limit,
        "usage": exchange.usage,
        "pending": end.pending,
    }


def _tool(given: Any) -> Tool:
    if isinstance(given, Tool):
        return given
    if callable(given) and hasattr(given, "__name__"):
        function: Callable[..., Any] = given
        return tool(function)
    from toolloop.interop.langchain import from_langchain

    return from_langchain(given)
