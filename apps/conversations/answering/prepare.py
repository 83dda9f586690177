"""How one question is answered: what an assistant's version makes of model, prompt, tools, limits and form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from apps.conversations.assistants.options import Options
from apps.conversations.assistants.selectors import version_options
from apps.conversations.attachments.selectors import FilesInScope
from apps.conversations.display.answer_forms import CITING, form_of
from apps.conversations.memory.prompt import notes_prompt
from apps.conversations.memory.selectors import Told
from apps.conversations.memory.tool import remember
from apps.conversations.models import AssistantVersion, Mode
from apps.conversations.toolset import bundle as tools
from apps.conversations.toolset.attached import read_attached_files
from apps.conversations.toolset.results import Searching
from apps.tools.toolset.direct_calls import offer_context
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.model_calls import code_toolset, run_toolset
from apps.tools.toolset.selectors import collection_tools
from jobs.context import JobContext
from runs.models import Run
from runs.providers import is_extractive, provider_wrapped
from runs.services import run_execute
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.messages import ModelMessage
from toolloop.modes import AttachedProvider, PlannedProvider, QuickProvider, plan_tool
from toolloop.output import Output
from toolloop.providers.base import Provider
from toolloop.tools import Tool, Toolset

_QUICK = (
    "The search for the user's question has been made for you: its result is the last thing before your answer. Answer from "
    "these passages alone; you cannot search again."
)
# Names no document: their names are theirs, and instructions are ours.
_NARROWED = "The user has limited this question to certain documents. Your tools see these alone; list_documents names them."
_CODE = "You reach your tools through programs: write one that calls them."
_PROJECT = "Instructions of the project that this conversation is in. Where they contradict anything above, what is above holds:"
_REPAIRS = 1
_FREE = Options()


@dataclass(frozen=True, slots=True)
class Answering:
    """What ``run_execute`` is given for one question; ``searching`` binds the search tools.

    ``unstored`` follows ``system``, and is the asker's alone: the run keeps no copy.
    """

    provider: Provider
    system: str
    history: Sequence[ModelMessage]
    toolset: Toolset
    limits: Limits
    options: Mapping[str, Any] = field(default_factory=dict)
    output: Output | None = None
    searching: Searching = Searching()  # noqa: RUF009 - frozen
    unstored: str = ""


def answering_of(
    version: AssistantVersion | None,
    *,
    run: Run,
    model: str,
    provider: Provider,
    guard: Guard,
    history: Sequence[ModelMessage],
    collections: Mapping[int, str],
    native: bool,
    loaded: Callable[[], Any],
    told: Told,
    beside: Sequence[Tool] = (),
    is_text: bool = False,
    given: FilesInScope = FilesInScope(),  # noqa: B008 - frozen
    project: str = "",
    is_narrowed: bool = False,
) -> Answering:
    """Return how a version answers; without one, the model calls tools as it sees fit.

    Args:
        model: who is asked, by its routing name; ``provider`` is its adapter.
        guard: narrowed to the version's toolkit already.
        history: the whole conversation up to the question.
        collections: what is searched: id -> name.
        native, loaded: see ``run_toolset``.
        told: what the workspace and the asker have models told; no notes where nobody's conversation is answered.
        beside: tools that ask other assistants; not for modes with tools of their own.
        is_text: no form, whatever the version has: another assistant reads it.
        given: the files that were attached to the conversation.
        project: instructions of the project that the conversation is in; "" for none.
        is_narrowed: the question is about certain documents, which is all that the tools see.

    Raises:
        Conflict: ``programs_not_allowed``, the version answers with programs, which this person may not run.
    """
    options = _FREE if version is None else version_options(version)
    mode = Mode.TOOLS if version is None else Mode(version.mode)
    no_model = is_extractive(model)
    form = None if no_model or is_text else form_of(version)
    planning = [plan_tool(options.max_steps)] if mode == Mode.PLANNED else []
    reading = [read_attached_files] if given.rows else []
    notes = None if no_model else told.notes
    noting = [] if notes is None or mode == Mode.QUICK else [remember]
    if mode == Mode.QUICK:
        toolset = tools.TOOLSET.filtered(lambda tool: tool.name == tools.SEARCH)
        offered = guard.toolset(toolset, tools.BUNDLE)
        toolset = Toolset([*offered, *reading], withheld=guard.withheld)
        provider = provider_wrapped(
            provider, lambda inner: QuickProvider(inner, no_model=no_model, output=form)
        )
    elif mode == Mode.CODE and not no_model:
        toolset = code_toolset(guard, run, theirs=[*reading, *noting])
    else:
        toolset = run_toolset(
            guard,
            run,
            theirs=[*planning, *reading, *noting, *beside],
            native=native,
            loaded=loaded,
            brought=lambda: collection_tools(tenant_id=run.tenant_id, collections=collections),
        )
    if mode == Mode.PLANNED:
        provider = provider_wrapped(
            provider,
            lambda inner: PlannedProvider(
                inner,
                max_steps=options.max_steps,
                max_replans=options.max_replans,
                no_model=no_model,
                output=form,
            ),
        )
    limits = _limits(mode, options)
    if reading:  # around the mode, and its one turn on top of the mode's own
        provider = provider_wrapped(provider, AttachedProvider)
        limits = replace(
            limits, max_steps=limits.max_steps + 1, max_tool_calls=(limits.max_tool_calls or 0) + 1
        )
    return Answering(
        provider=provider,
        system=_system(
            version,
            mode,
            collections.values(),
            is_formed=form is not None,
            has_files=bool(reading),
            project=project,
            is_narrowed=is_narrowed,
            instructions=told.instructions,
        ),
        history=_recent(history, options.memory_turns),
        toolset=toolset,
        limits=limits,
        options=options.model_options,
        output=form,
        searching=Searching(options.top_k, options.neighbours, options.search_filters),
        unstored="" if notes is None else notes_prompt(notes, has_tool=bool(noting)),
    )


async def answering_execute(
    ctx: JobContext, way: Answering, scope: tools.Scope, collections: Sequence[int], **more: Any
) -> RunFinished | None:
    """Drive the loop for a question; the tools get the scope with how the answering searches.

    Args:
        scope: what the tools of the run work on, and whose it is.
        collections: ids of what is searched.
        more: further arguments of ``run_execute``, which says what they are, what is returned, and what is raised.
    """
    context = {
        **offer_context(
            tenant=scope.tenant, run=scope.run, guard=scope.guard, collections=collections, in_db=ctx.in_db
        ),
        tools.SCOPE: replace(scope, searching=way.searching),
    }
    given: dict[str, Any] = {
        "toolset": way.toolset,
        "provider": way.provider,
        "system": way.system,
        "unstored": way.unstored,
        "history": way.history,
        "limits": way.limits,
        "options": way.options,
        "output": way.output,
        "context": context,
    }
    return await run_execute(ctx, scope.run, **{**given, **more})


def _system(
    version: AssistantVersion | None,
    mode: Mode,
    names: Iterable[str],
    *,
    is_formed: bool,
    has_files: bool,
    project: str,
    is_narrowed: bool,
    instructions: str,
) -> str:
    """Return the workspace's instructions, our rules, those of the mode and the form, the assistant's own prompt, the project's.

    What changes with each question comes last, so that providers find all before it in their caches.
    """
    parts = []
    if mode == Mode.QUICK:
        parts.append(_QUICK)
    elif mode == Mode.CODE:
        parts.append(_CODE)
    if is_formed:
        parts.append(CITING)
    if version is not None and version.prompt.strip():
        parts.append(version.prompt.strip())
    if project.strip():
        parts.append(f"{_PROJECT}\n{project.strip()}")
    if is_narrowed:
        parts.append(_NARROWED)
    return tools.system_prompt(names, "\n\n".join(parts), has_files=has_files, instructions=instructions)


def _recent(history: Sequence[ModelMessage], turns: int) -> Sequence[ModelMessage]:
    """Return the question with so many exchanges before it."""
    return history[-(2 * turns + 1) :]


def _limits(mode: Mode, options: Options) -> Limits:
    steps, calls = options.max_steps, options.max_tool_calls
    if mode == Mode.PLANNED:
        # Each plan takes a turn and a call, may be refused once, and is followed by its steps.
        plans = options.max_replans + 1
        steps, calls = plans * (steps + 2), calls + 2 * plans
    return Limits(
        max_steps=steps,
        max_tool_calls=calls,
        max_seconds=float(settings.RUN_SECONDS),
        max_output_repairs=_REPAIRS,
    )
