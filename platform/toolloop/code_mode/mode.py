"""Code mode: a model writes one program that calls many tools, instead of one call after the other."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from toolloop.call_counters import CallCounters
from toolloop.code_mode import prompts
from toolloop.code_mode.backend import ProgramResult, SandboxBackend
from toolloop.code_mode.default import default_backend
from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.limits import CodeLimits
from toolloop.code_mode.result import CallRecord, CodeResult, Ending
from toolloop.code_mode.running import Called, CodeEvent, Printed, Seen, declaring, parked, streamed, until
from toolloop.code_mode.state import state_open, state_seal
from toolloop.code_mode.toolset import CodeToolset
from toolloop.deferred import Decision
from toolloop.errors import ConfigurationError
from toolloop.journal import Journal, NullJournal
from toolloop.limits import Limits
from toolloop.messages import ToolCall, ToolResult
from toolloop.nested import NestedCalls, SerialJournal
from toolloop.tools.context import ToolContext, ToolError, ToolOutput
from toolloop.tools.runtime import run_in_thread
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset

TOOL_NAME = "execute_tools"
Repair = Callable[[str, CodeResult], Awaitable[str | None]]
Ask = Callable[[list[dict[str, str]]], Awaitable[str]]


class CodeMode:
    """Tools for programs.

    Args:
        tools: what programs may call; frozen from here on.
        preamble, postamble: text before and after the signatures in ``prompt()``; the built-in ones when None.
        assist_tool_chaining: show the shapes of results, so that a program can use them unseen.
        return_schemas: JSON Schema of results by tool name, where type hints say too little.
        limits: of one program.
        run_limits: for programs outside of a run: tool timeouts, calls, parallelism.
        declared_errors: exceptions that the tools raise on purpose: their text reaches the program. Of all others it
            learns the type only, as a model does.
        state_key: secret that signs the state of paused programs; the same in every process. Needed where a tool needs
            approval or is answered from outside.
        binding: whose programs these are (tenant, run): a paused one goes on under the same binding only.
        backend: the sandbox; see ``default_backend``.
        described: spell out every tool as a function in what the model reads. Without, the model must see the tools
            beside ``execute_tools``, and is told that programs call them by the same names.

    Raises:
        ConfigurationError: two tools of one name, or no ``state_key`` where one is needed.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        preamble: str | None = None,
        postamble: str | None = None,
        assist_tool_chaining: bool = False,
        return_schemas: Mapping[str, Mapping[str, Any]] | None = None,
        limits: CodeLimits = CodeLimits(),  # noqa: B008 - frozen
        run_limits: Limits = Limits(),  # noqa: B008 - frozen
        declared_errors: tuple[type[Exception], ...] = (),
        state_key: bytes = b"",
        binding: str = "",
        backend: SandboxBackend | None = None,
        described: bool = True,
    ) -> None:
        self._declared = declared_errors
        self._take(tools)
        self._preamble = prompts.PREAMBLE if preamble is None else preamble
        self._postamble = prompts.POSTAMBLE if postamble is None else postamble
        self._chaining, self._schemas = assist_tool_chaining, return_schemas or {}
        self._described = described
        self._limits, self._run_limits = limits, run_limits
        self._key, self._binding = state_key, binding
        self._backend = default_backend() if backend is None else backend
        waits = [tool.name for tool in self._original if tool.needs_approval or tool.external]
        if waits and len(state_key) < 16:
            raise ConfigurationError(
                f"CodeMode(state_key=...) must be at least 16 secret bytes, the same in every process: {', '.join(waits)} "
                "can pause a program, and its state is signed."
            )

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._original)

    def __len__(self) -> int:
        return len(self._original)

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool of that name, or None."""
        return next((tool for tool in self._original if tool.name == name), None)

    def filter(
        self, names: Iterable[str] | None = None, predicate: Callable[[Tool], bool] | None = None
    ) -> CodeMode:
        """Return a code mode with those tools that are named and for which ``predicate`` is true.

        Raises:
            ValueError: neither is given, or nothing is left.
        """
        if names is None and predicate is None:
            raise ValueError("pass names, a predicate, or both")
        wanted = None if names is None else set(names)
        kept = [
            tool
            for tool in self._original
            if (wanted is None or tool.name in wanted) and (predicate is None or predicate(tool))
        ]
        if not kept:
            raise ValueError("no tool is left")
        other = copy.copy(self)
        other._take(kept)
        return other

    # Prompt mode

    def prompt(self) -> str:
        """Return the system prompt for a model that writes programs in its replies."""
        parts = (self._preamble, self._functions(), prompts.environment(self._backend.name), self._postamble)
        return "\n\n".join(part for part in parts if part)

    @staticmethod
    def extract_code(text: str) -> str | None:
        """Return the program in a reply, None for a reply without one; see ``prompts.code_extract``."""
        return prompts.code_extract(text)

    def feedback(self, result: CodeResult) -> str:
        """Return what the model reads about a program it wrote."""
        return prompts.feedback_text(result.to_text(self._limits.model_chars))

    async def execute(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        journal: Journal = NullJournal(),  # noqa: B008 - holds no state
        call_id: str = "program",
        max_repairs: int = 0,
        repair: Repair | None = None,
        stop: asyncio.Event | None = None,
        on_event: Callable[[CodeEvent], None] | None = None,
    ) -> CodeResult:
        """Run a program.

        Args:
            code: the program.
            context: given to tools as ``ToolContext.data``.
            journal: told of every call.
            call_id: ids of the program's calls begin with it; stable for a program that may be run again after a crash.
            max_repairs: further programs after one that failed.
            repair: asked for them: ``await repair(code, result)`` returns a program, or None to give up.
            stop: set it to end the program.
            on_event: told of output and calls as they happen.

        Returns:
            The last program's result; ``calls`` are those of all attempts.
        """
        earlier: tuple[CallRecord, ...] = ()
        attempt = 1
        while True:
            parent = self._parent(context, journal, f"{call_id}.{attempt}" if attempt > 1 else call_id)
            seen = Seen(on_event)
            result = await until(stop, self._run(code, parent, None, seen), seen)
            result = replace(result, calls=earlier + result.calls, attempts=attempt)
            ended = result.success or result.is_paused or result.ending is Ending.CANCELLED
            if ended or repair is None or attempt > max_repairs:
                return result
            better = await repair(code, result)
            if better is None:
                return result
            code, earlier, attempt = better, result.calls, attempt + 1

    def execute_sync(self, code: str, **options: Any) -> CodeResult:
        """Run a program from code that is not async; see ``execute``."""
        return asyncio.run(self.execute(code, **options))

    async def execute_streaming(self, code: str, **options: Any) -> AsyncGenerator[CodeEvent, None]:
        """Run a program and yield what happens in order; ``Ended`` is the last. Options as for ``execute``."""
        run = functools.partial(self.execute, code, **options)
        async with aclosing(streamed(run)) as events:
            async for event in events:
                yield event

    async def converse(self, question: str, ask: Ask, *, rounds: int = 6) -> tuple[str, list[CodeResult]]:
        """Let a model without native tools answer a question by programs.

        Args:
            question: the user's.
            ask: sends chat messages (``{"role", "content"}``, the system prompt first) and returns the reply's text.
            rounds: programs it may write; then it must answer with what it has.

        Returns:
            The final answer, and the results of its programs.
        """
        messages = [{"role": "system", "content": self.prompt()}, {"role": "user", "content": question}]
        results: list[CodeResult] = []
        while True:
            reply = await ask(messages)
            code = self.extract_code(reply)
            if code is None or len(results) >= rounds:
                return reply, results
            results.append(await self.execute(code, call_id=f"program{len(results) + 1}"))
            told = self.feedback(results[-1])
            if len(results) == rounds:
                told += "\nThat was the last program. Answer now, without code."
            messages += [{"role": "assistant", "content": reply}, {"role": "user", "content": told}]

    async def resume(
        self,
        state: str,
        decisions: Mapping[str, Decision],
        *,
        context: Mapping[str, Any] | None = None,
        journal: Journal = NullJournal(),  # noqa: B008 - holds no state
        on_event: Callable[[CodeEvent], None] | None = None,
    ) -> CodeResult:
        """Go on with a paused program, in any process.

        Args:
            state: ``CodeResult.state``.
            decisions: by id of the pending calls. One that is missing leaves the program paused.
            context, journal, on_event: as for ``execute``.

        Raises:
            StateRefused: the state was changed, is another binding's, or another version's.
        """
        data = state_open(state, key=self._key, binding=self._binding)
        parent = self._parent(context, journal, data["host"]["call_id"])
        return await self._run("", parent, (data, decisions), on_event)

    # Tool mode

    def tool(self) -> Tool:
        """Return ``execute_tools(code)``; give it to a run together with its tools, see ``toolset``."""

        async def execute_tools(code: str, ctx: ToolContext) -> ToolOutput:
            decided = ctx.decision
            paused = None
            if decided is not None and isinstance(decided.state, dict) and "program" in decided.state:
                data = state_open(decided.state["program"], key=self._key, binding=self._binding)
                inner = replace(decided, state=decided.state["inner"])
                paused = (data, {decided.state["call_id"]: inner})
            result = await self._run(code, ctx, paused, None)
            if result.is_paused:
                raise parked(result)
            text = result.to_text(self._limits.model_chars)
            if not result.success:
                raise ToolError(text)
            return ToolOutput(text, result.to_json(), result.parts)

        return Tool(
            name=TOOL_NAME,
            description=self.tool_prompt(),
            parameters={
                "type": "object",
                "properties": {"code": {"type": "string", "description": "One complete Python program."}},
                "required": ["code"],
                "additionalProperties": False,
            },
            function=execute_tools,
            # Run again after a crash: the journal gives the calls made before their results.
            side_effects=False,
            idempotent=True,
            sequential=any(tool.sequential for tool in self._original),
            timeout_s=self._limits.wall_s + 15,
            context_parameter="ctx",
            mock=execute_tools,  # In mock mode the program runs, on the mocks of its tools.
        )

    def toolset(self, *beside: Tool) -> CodeToolset:
        """Return the toolset for ``run_loop``.

        Args:
            beside: tools that the model may also call natively.
        """
        return CodeToolset([self.tool(), *beside], self._tools)

    def tool_prompt(self) -> str:
        """Return the description of ``execute_tools``: the functions and the rules."""
        return (
            f"Run a Python program that calls {'the functions below' if self._described else 'your other tools'}, and "
            "read what it prints and the value of its last expression. Prefer one program over many calls: loop, filter "
            "and combine results in it.\n\n"
            f"{self._functions()}\n\n{prompts.environment(self._backend.name)}"
        )

    def tool_schema(self, form: str = "openai") -> dict[str, Any]:
        """Return ``execute_tools`` as a provider's API wants it; see ``prompts.schema_render``."""
        return prompts.schema_render(self.tool(), form)

    # Inside

    def _take(self, tools: Iterable[Tool]) -> None:
        """Set what programs may call. Raises ConfigurationError for a name that cannot be."""
        self._original = tuple(tools)
        if any(tool.name == TOOL_NAME for tool in self._original):
            raise ConfigurationError(
                f"a tool must not be named {TOOL_NAME!r}: programs cannot start programs"
            )
        self._tools = Toolset(declaring(tool, self._declared) for tool in self._original)

    def _functions(self) -> str:
        if not self._described:
            return prompts.BESIDE
        return prompts.functions_text(self._tools, chaining=self._chaining, return_schemas=self._schemas)

    def _parent(self, context: Mapping[str, Any] | None, journal: Journal, call_id: str) -> ToolContext:
        """Return the context of a program that no run started: with accounts and journal of its own."""
        nested = NestedCalls(
            toolset=self._tools,
            limits=self._run_limits,
            journal=SerialJournal(journal),
            accounts=CallCounters(self._run_limits),
            run_blocking=run_in_thread,
            mock=False,
            standing=call_id,
        )
        return ToolContext(context or {}, call_id, nested=nested)

    async def _run(
        self,
        code: str,
        parent: ToolContext,
        paused: tuple[dict[str, Any], Mapping[str, Decision]] | None,
        on_event: Callable[[CodeEvent], None] | None,
    ) -> CodeResult:
        async def invoke(call: ToolCall, decision: Decision | None) -> ToolResult:
            return await parent.call(call.name, call.arguments or {}, call_id=call.id, decision=decision)

        def printed(text: str) -> None:
            if on_event is not None:
                on_event(Printed(text))

        def called(record: CallRecord) -> None:
            if on_event is not None:
                on_event(Called(record))

        host = ToolHost(
            toolset=self._tools, limits=self._limits, invoke=invoke, call_id=parent.call_id, on_call=called
        )
        if paused is None:
            outcome = await self._backend.run(code, host, self._limits, printed)
        else:
            host.decisions = dict(paused[1])
            outcome = await self._backend.resume(paused[0], host, self._limits, printed)
        return self._sealed(outcome)

    def _sealed(self, outcome: ProgramResult) -> CodeResult:
        if outcome.state is None:
            return outcome.result
        sealed = state_seal(outcome.state, key=self._key, binding=self._binding)
        return replace(outcome.result, state=sealed)
