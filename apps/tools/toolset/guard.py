"""Holds the tools of one run or request against the policy: when they are offered, and again when they are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from apps.tools.policy.engine import Decision, Policy, Subject, ToolFacts, decide, decide_all
from apps.tools.toolset.bundles import Bundle, ToolChange
from basics.errors import Denied
from toolloop.tools import Tool, ToolContext, Toolset
from toolloop.tools.context import CallRefused
from toolloop.tools.tool import AdmitRule, Verdict

T = TypeVar("T")
_NAMING = ("collections", "collection")
DENIED = "denied"


@dataclass(frozen=True, slots=True)
class EntryFacts:
    """What a workspace states about a tool, as far as a run needs it."""

    is_enabled: bool = True
    description: str = ""
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Rights:
    """What a caller may do by the rules of one moment; see ``Guard`` for what its values are."""

    policy: Policy
    subject: Subject
    entries: Mapping[str, EntryFacts]
    can: Callable[[str], bool]
    admit: Callable[[ToolFacts], AdmitRule | None]


class Guard:
    """The policy as it concerns one caller, for one run or request; make it with ``selectors.guard_for``.

    Args:
        rights: the workspace's grants, the caller, what is stated about tools by name, whether the caller has a right, and
            what counts the calls of a tool against its limits (None for a tool without any), as they are now.
        again: reads those once more; asked for each call that is about to run, with its tool's name, so that what was taken
            away meanwhile stops the next call. Raises Denied where the caller is no more.
        scope: collections that the calls are about: id -> name.
        clock: the time with its offset, for grants that expire meanwhile.
        bundles: all tools there are for this caller; of two with one name the first counts.
        tools: names of the only tools these calls may be of, as an assistant's toolkit has them; None for all.
        off: names of tools that the caller has switched off here.
        change: what becomes of each tool that is offered, None where it is left out; an experiment holds tools back so.
    """

    def __init__(
        self,
        rights: Rights,
        *,
        again: Callable[[str], Rights],
        scope: Mapping[int, str],
        clock: Callable[[], datetime],
        bundles: Iterable[Bundle] = (),
        tools: Collection[str] | None = None,
        off: Collection[str] = (),
        change: ToolChange | None = None,
    ) -> None:
        self.bundles, self.change, self.off = tuple(bundles), change, off
        self._rights, self._again, self._clock = rights, again, clock
        self._scope, self._only = dict(scope), tools
        self._facts: dict[str, ToolFacts] = {}
        self._withheld: dict[str, str] = {}

    def withheld(self, name: str) -> str:
        """Return why a tool that ``tools`` has looked at is not offered, "" for one that is, or that nobody knows.

        What an assistant's toolkit leaves out is as if it were not there.
        """
        return self._withheld.get(name, "")

    def tools(self, bundles: Iterable[Bundle] | None = None) -> list[Tool]:
        """Return the tools of its bundles, or of some, that some call of this caller could be allowed."""
        found: dict[str, Tool] = {}
        for bundle in self.bundles if bundles is None else bundles:
            for tool in self.offered(bundle.tools(), bundle):
                found.setdefault(tool.name, tool)
        return list(found.values())

    def toolset(self, tools: Iterable[Tool], bundle: Bundle) -> Toolset:
        """Return those tools that may be offered; each asks the policy again when it is called."""
        return Toolset(self.offered(tools, bundle))

    def offered(self, tools: Iterable[Tool], bundle: Bundle) -> list[Tool]:
        """Return those tools of a bundle that some call of this caller could be allowed."""
        found = []
        for tool in tools:
            decided = self.decision(tool, bundle)
            if decided.effect != "deny":
                found.append(self._guarded(tool, bundle))
            elif self._only is None or tool.name in self._only:
                self._withheld[tool.name] = decided.why
        if self.change is None:
            return found
        return [changed for tool in found if (changed := self.change(tool)) is not None]

    def narrowed(self, collections: Collection[int]) -> Guard:
        """Return the guard of calls about some of the collections in scope."""
        return Guard(
            self._rights,
            again=self._again,
            scope={pk: name for pk, name in self._scope.items() if pk in collections},
            clock=self._clock,
            bundles=self.bundles,
            tools=self._only,
            off=self.off,
            change=self.change,
        )

    def decision(self, tool: Tool, bundle: Bundle, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Decide about a call, or with ``arguments`` None about offering the tool."""
        facts = self._facts.get(tool.name)
        if facts is None:
            facts = self._facts[tool.name] = bundle.facts(tool)
        return self.judge(facts, bundle, arguments)

    def judge(self, facts: ToolFacts, bundle: Bundle, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Decide as ``decision`` does, where the facts are known and the tool itself need not be made."""
        needed = ["tool.run", bundle.changes_need if facts.side_effects else ""]
        if missing := [right for right in needed if right and not self._rights.can(right)]:
            return Decision("deny", None, f"it needs the right “{missing[0]}”")
        if not self._entry(facts.name).is_enabled:
            return Decision("deny", None, "the tool is switched off in this workspace")
        if self._only is not None and facts.name not in self._only:
            return Decision("deny", None, "it is not in the toolkit of this assistant")
        if facts.name in self.off:
            return Decision("deny", None, "it is switched off in this conversation")
        now = self._clock()
        if facts.name not in bundle.filtering or not self._scope:
            return decide_all(
                self._rights.policy, self._rights.subject, facts, self._scope, arguments, now=now
            )
        # Collections that no call may touch are left out by the tool itself; the rest must all agree to this one.
        touched = self._named(arguments)
        offers = {pk: self._offer(facts, pk, now) for pk in touched}
        open_ = [pk for pk in touched if offers[pk].effect != "deny"] or touched
        if arguments is None:
            return max((offers[pk] for pk in open_), key=lambda offer: offer.strength)
        return decide_all(self._rights.policy, self._rights.subject, facts, open_, arguments, now=now)

    def collections(self, rows: Iterable[T], pk: Callable[[T], int]) -> list[T]:
        """Return those rows that the tool which is running may touch; one in ``Bundle.filtering`` works on these alone.

        Call it from inside the tool, in any thread that has the tool's context variables; elsewhere it returns nothing.
        """
        facts = self._facts.get(_running.get())
        if facts is None or not self._rights.can("tool.run"):
            return []
        now = self._clock()
        return [row for row in rows if self._offer(facts, pk(row), now).effect != "deny"]

    def _offer(self, facts: ToolFacts, pk: int, now: datetime) -> Decision:
        """Return whether some call about a collection could be allowed."""
        return decide(self._rights.policy, self._rights.subject, facts, pk, None, now=now)

    def _named(self, arguments: Mapping[str, Any] | None) -> Collection[int]:
        """Return the collections that a call names, all in scope when it names none or one that is unknown."""
        if not arguments:
            return list(self._scope)
        names: set[str] = set()
        for key in _NAMING:
            given = arguments.get(key)
            for name in given if isinstance(given, list) else [given]:
                if isinstance(name, str):
                    names.add(name.strip().casefold())
        found = [pk for pk, name in self._scope.items() if name.casefold() in names]
        return found if names and len(found) == len(names) else list(self._scope)

    def _entry(self, name: str) -> EntryFacts:
        return self._rights.entries.get(name, _PLAIN)

    def _guarded(self, tool: Tool, bundle: Bundle) -> Tool:
        def permit(arguments: Mapping[str, Any], context: ToolContext) -> Verdict:
            found = self.decision(tool, bundle, arguments)
            return Verdict(found.effect, found.why, found.rule, found.approval)

        def admit(arguments: Mapping[str, Any]) -> None:
            try:
                self._rights = self._again(tool.name)
            except Denied as error:
                raise CallRefused(error.code, f"{tool.name} was not run: {error.message}", data={}) from error
            found = self.decision(tool, bundle, arguments)
            if found.effect == "deny":
                raise CallRefused(DENIED, f"{tool.name} was not run: {found.why}.", data={})
            counted = self._rights.admit(self._facts[tool.name])
            if counted is not None:
                counted(arguments)

        entry = self._entry(tool.name)
        return replace(
            tool,
            permit=permit,
            admit=admit,
            function=_named(tool.name, tool.function),
            description=entry.description or tool.description,
            timeout_s=tool.timeout_s if entry.timeout_s is None else entry.timeout_s,
        )


_PLAIN = EntryFacts()
_running: ContextVar[str] = ContextVar("running_tool", default="")


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a tool, telling what it calls which tool is running."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaiting(*args: Any, **kwargs: Any) -> Any:
            token = _running.set(name)
            try:
                return await function(*args, **kwargs)
            finally:
                _running.reset(token)

        return awaiting

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        token = _running.set(name)
        try:
            return function(*args, **kwargs)
        finally:
            _running.reset(token)

    return wrapped
