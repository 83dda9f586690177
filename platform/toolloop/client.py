"""One object for plain Python: a model, tools and limits, and a run per call. It composes the parts; the loop is the same."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from toolloop.client_options import Input, RunOptions, facts_checked, input_history
from toolloop.deferred import PendingCall
from toolloop.errors import ConfigurationError
from toolloop.events import Event, RunFinished
from toolloop.generation import Gatherer, Generation, GenerationStream
from toolloop.journal import NullJournal
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolResult
from toolloop.metering import UsageHook
from toolloop.output import Output, output_of
from toolloop.prompt_templates import Guidance, question_split, system_prompt
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile, profile_for
from toolloop.response_cache import Cache, CacheSettings
from toolloop.tokens import Usage
from toolloop.tools.catalog import Catalog, CatalogEntry
from toolloop.tools.classes import ToolClass
from toolloop.tools.dynamic import DynamicToolset
from toolloop.tools.figures import ToolFigures
from toolloop.tools.session import ToolSession
from toolloop.tools.tool import Tool, tool
from toolloop.tools.toolset import Toolset, ToolSource

if TYPE_CHECKING:
    from toolloop.connections import Connection
    from toolloop.intent import Intent
    from toolloop.models import ModelCatalog
    from toolloop.telemetry import Telemetry

# The loop and what else only a run needs is imported by the methods that run: `import toolloop` stays cheap.
AnyTool = Tool | ToolClass | ToolSource | Callable[..., Any]


class Client:
    """A model with tools.

    In ``async with`` the connections to providers are kept open between runs; without, each run makes its own. One client
    serves several runs at once.

    Args:
        model: routing name, "anthropic/claude-..." say.
        tools: what the model may call; plain functions become tools as under ``@tool``. Of an MCP server (connected, in
            the same event loop) the model sees what it offers at each turn.
        system: system prompt.
        api_key: of the model's provider; from the environment when None.
        base_url: of the model's provider; keys of the environment are not sent there.
        limits: of each run.
        endpoints: servers for "compatible/<name>/<model>", by name: ``base_url``, ``api_key`` and whatever else
            ``CompatibleProvider`` takes.
        fallback_models: asked in turn when the model cannot be had, with keys of the environment.
        cache: answers to requests without tools are kept here for ``cache_ttl_s`` seconds, apart per ``cache_scope``.
        dynamic_tools: the model sees ``core_tools`` only, and finds and loads ``tools`` when it needs them: by its
            provider's own tool search where it has one, else by ours. The name of a cheap model lets that one choose.
        core_tools: always shown.
        guide: add to the system prompt when and how to use the tools; see ``toolloop.prompt_templates``.
        catalog: with ``dynamic_tools``, holds the tools instead of ``tools``, with an embedder say.
        options: settings that only some models know, "temperature" say.
        context: given to tools as ``ToolContext.data``.
        on_usage, usage_metadata: told what each model call used; see ``toolloop.metering``.
        telemetry: traces runs where given.
        profile: facts about the model; looked up by its name when None.
        models: what is known about models, own prices say, fallbacks included; the built-in facts when None.
        provider: an adapter made elsewhere, which stays open; ``model`` is its bare name then.
        env: where keys and URLs are looked up.

    Raises:
        ConfigurationError: tools that do not fit together. Models and keys are looked at when a run begins.
    """

    def __init__(
        self,
        model: str,
        *,
        tools: Iterable[AnyTool] = (),
        system: str = "",
        api_key: str | None = None,
        base_url: str | None = None,
        endpoints: Mapping[str, Mapping[str, Any]] | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        fallback_models: Sequence[str] = (),
        cache: Cache | None = None,
        cache_ttl_s: float | None = 3600.0,
        cache_scope: str = "",
        dynamic_tools: bool | str = False,
        core_tools: Iterable[Tool | ToolClass | Callable[..., Any]] = (),
        catalog: Catalog | None = None,
        guide: bool | Guidance = False,
        options: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        on_usage: UsageHook | None = None,
        usage_metadata: Mapping[str, Any] | None = None,
        telemetry: Telemetry | None = None,
        profile: Profile | None = None,
        models: ModelCatalog | None = None,
        provider: Provider | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self._models = (model, *fallback_models)
        self._system, self._limits, self._options = system, limits, dict(options or {})
        self._context, self._metadata = dict(context or {}), dict(usage_metadata or {})
        self._on_usage, self._telemetry, self._profile = on_usage, telemetry, profile
        self._core = Toolset(_as_tool(entry) for entry in core_tools)
        given: list[Tool] = []
        sources: list[ToolSource] = []
        for entry in tools:
            if isinstance(entry, ToolSource):
                sources.append(entry)
            else:
                given.append(_as_tool(entry))
        if sources and dynamic_tools:
            raise ConfigurationError(
                "an MCP server lists its tools itself: pass it to a client without dynamic_tools"
            )
        if catalog is not None and (given or not dynamic_tools):
            raise ConfigurationError("a catalog replaces tools and needs dynamic_tools")
        self._all = _joined((*self._core, *given), sources)
        self._facts = facts_checked(models, endpoints or {})
        self._catalog = catalog or Catalog(given)
        self._dynamic, self._guide = dynamic_tools, guide
        self._connect: dict[str, Any] = {
            "env": env,
            "api_key": api_key,
            "base_url": base_url,
            "provider": provider,
            "endpoints": endpoints or {},
            "facts": self._facts,
            "cache": None if cache is None else CacheSettings(cache, cache_ttl_s, cache_scope),
        }
        self._kept: tuple[asyncio.AbstractEventLoop, dict[tuple[str, ...], Connection]] | None = None
        self.figures = ToolFigures(self._group_of)

    async def __aenter__(self) -> Self:
        if self._kept is not None:
            raise ConfigurationError("this client is already open: create another one")
        self._kept = (asyncio.get_running_loop(), {})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept, self._kept = self._kept, None
        for connection in kept[1].values() if kept else ():
            await connection.aclose()

    async def generate(self, input: Input, **options: Unpack[RunOptions]) -> Generation:  # noqa: A002 - the usual word
        """Answer an input, calling tools on the way.

        Args:
            input: a question, a history that ends in one, or a generation to go on with: a parked one with ``decisions``,
                a stopped or failed one from where it stands.
            options: see ``RunOptions``.

        Raises:
            RunFailed: the run failed, or gave no answer of the form asked for.
            ConfigurationError: for options that do not fit, an unknown model, a missing key.
        """
        async with self.stream(input, **options) as stream:
            async for _ in stream:
                pass
            return stream.generation

    def stream(self, input: Input, **options: Unpack[RunOptions]) -> GenerationStream:  # noqa: A002 - the usual word
        """Answer an input as ``generate`` does, and yield the loop's events; failures are events too."""
        first_step, usage = (input.steps, input.usage) if isinstance(input, Generation) else (0, Usage())
        history = input_history(options.get("history", ()), input)
        wanted = options.get("output")
        form = None if wanted is None else output_of(wanted)
        gatherer = Gatherer(history, first_step)
        pending = input.pending if isinstance(input, Generation) else ()
        events = self._events(history, first_step, usage, form, gatherer, pending, options)
        return GenerationStream(events, gatherer, form=form)

    async def generate_intent(self, input: Input, **options: Unpack[RunOptions]) -> Intent:  # noqa: A002 - the usual word
        """Ask which calls the model would make; none is run. Of the options, those of one model call count.

        Raises:
            ProviderError: no turn could be had.
            ConfigurationError: as for ``generate``.
        """
        from toolloop.intent import calls_plan

        history = input_history(options.get("history", ()), input)
        toolset = self._toolset(options, history)
        async with self._connected(self._models) as connection:
            return await calls_plan(
                provider=connection.provider,
                model=connection.model,
                history=history,
                toolset=toolset,
                system=self._prompt(options, history, toolset),
                limits=options.get("limits", self._limits),
                options=options.get("options", self._options),
                cache_key=options.get("conversation_id", ""),
                user_key=options.get("user_key", ""),
                profile=self._profile or connection.profile,
                profiles=connection.profiles,
                on_usage=self._on_usage,
                usage_metadata={**self._metadata, **options.get("usage_metadata", {})},
            )

    async def execute_intents(
        self, intent: Intent, *, chosen: Collection[str] | None = None, **options: Unpack[RunOptions]
    ) -> list[ToolResult]:
        """Run the chosen calls of an intent, all when None; choosing approves. See ``toolloop.intent.calls_run``."""
        from toolloop.intent import calls_run

        return await calls_run(
            intent,
            self._toolset(options, ()),
            chosen=chosen,
            context={**self._context, **options.get("context", {})},
            limits=options.get("limits", self._limits),
            mock_tools=options.get("mock_tools", False),
        )

    async def _events(
        self,
        history: list[ModelMessage],
        first_step: int,
        usage: Usage,
        form: Output | None,
        gatherer: Gatherer,
        pending: tuple[PendingCall, ...],
        options: RunOptions,
    ) -> AsyncGenerator[Event, None]:
        from toolloop.loop_values import LoopInput, LoopServices
        from toolloop.telemetry import run_traced

        toolset = self._toolset(options, history)
        async with self._connected(self._models) as connection:
            events = run_traced(
                self._telemetry,
                LoopInput(
                    model=connection.model,
                    system=self._prompt(options, history, toolset),
                    history=history,
                    toolset=toolset,
                    limits=options.get("limits", self._limits),
                    context={**self._context, **options.get("context", {})},
                    first_step=first_step,
                    usage=usage,
                    options=options.get("options", self._options),
                    cache_key=options.get("conversation_id", ""),
                    user_key=options.get("user_key", ""),
                    decisions=options.get("decisions"),
                    pending=pending,
                    mock_tools=options.get("mock_tools", False),
                    output=form,
                    server_tools=options.get("server_tools", ()),
                ),
                LoopServices(
                    provider=connection.provider,
                    journal=options.get("journal", NullJournal()),
                    stop=options.get("stop"),
                    profile=self._profile or connection.profile,
                    profiles=connection.profiles,
                    on_usage=self._on_usage,
                    usage_metadata={**self._metadata, **options.get("usage_metadata", {})},
                ),
                conversation_id=options.get("conversation_id", ""),
            )
            async with aclosing(events):
                async for event in events:
                    gatherer.see(event)
                    if isinstance(event, RunFinished):
                        self.figures.add(event.tools)
                    yield event

    @asynccontextmanager
    async def _connected(self, models: tuple[str, ...]) -> AsyncGenerator[Connection, None]:
        kept = self._kept
        if kept is not None and kept[0] is asyncio.get_running_loop():
            if models not in kept[1]:
                kept[1][models] = self._open(models)
            yield kept[1][models]
            return
        connection = self._open(models)
        try:
            yield connection
        finally:
            await connection.aclose()

    def _open(self, models: tuple[str, ...]) -> Connection:
        # Imported here because adapters take a quarter of what importing this module would cost.
        from toolloop.connections import connection_open, is_one_server

        settings = self._connect
        if models != self._models:  # The model that chooses tools: its answers are not worth a cache.
            settings = {**settings, "cache": None}
            if settings["provider"] is None and not is_one_server(self._facts, models[0], self._models[0]):
                settings |= {"api_key": None, "base_url": None}
        return connection_open(models, **settings)

    async def _choose(self, intent: str, entries: Sequence[CatalogEntry]) -> Sequence[str]:
        from toolloop.chooser import model_chooser

        async with self._connected((str(self._dynamic),)) as connection:
            choose = model_chooser(
                connection.provider, connection.model, on_usage=self._on_usage, usage_metadata=self._metadata
            )
            return await choose(intent, entries)

    def _toolset(self, options: RunOptions, history: Sequence[ModelMessage]) -> Toolset:
        wanted = options.get("use_tools")
        if wanted is not None:
            unknown = [n for n in wanted if self._all.get(n) is None and n not in self._catalog]
            if unknown:
                raise ConfigurationError(
                    f"use_tools contains {', '.join(unknown)}, which this client doesn't have"
                )
        if not self._dynamic or (wanted is not None and not wanted):
            if wanted is None:
                return self._all
            return self._all.filtered(lambda entry: entry.name in wanted)
        session = options.get("session")
        toolset = DynamicToolset(
            self._catalog,
            session or ToolSession(),
            self._core.filtered(lambda entry: wanted is None or entry.name in wanted),
            chooser=self._choose if isinstance(self._dynamic, str) else None,
            allowed=None if wanted is None else lambda name: name in wanted,
            native=self._dynamic is True and self._searches_itself(),
        )
        if session is None:
            toolset.restore(history)
        return toolset

    def _searches_itself(self) -> bool:
        """Tell whether a model that may answer has a tool search of its provider's; adapters of others leave it out."""
        own, first = self._connect["provider"], self._profile
        if first is None:
            name = self._models[0]
            first = self._facts.profile(name) if own is None else profile_for(own.name, name)
        others = (self._facts.profile(name) for name in self._models[1:])
        return first.deferred_tools or any(other.deferred_tools for other in others)

    def _prompt(self, options: RunOptions, history: Sequence[ModelMessage], toolset: Toolset) -> str:
        role = options.get("system", self._system)
        if not self._guide:
            return role
        question, before = question_split(history)
        guidance = self._guide if isinstance(self._guide, Guidance) else None
        return system_prompt(role, toolset, question=question, history=before, guidance=guidance)

    def _group_of(self, name: str) -> str:
        found = self._all.get(name)
        if found is not None:
            return found.group
        entry = self._catalog.entry(name)
        return "" if entry is None else entry.group


def _joined(tools: Iterable[Tool], sources: Sequence[ToolSource]) -> Toolset:
    if not sources:
        return Toolset(tools)
    from toolloop.mcp.toolset import McpToolset

    return McpToolset(sources, tools)


def _as_tool(entry: Tool | ToolClass | Callable[..., Any]) -> Tool:
    if isinstance(entry, Tool):
        return entry
    return entry.as_tool() if isinstance(entry, ToolClass) else tool(entry)
