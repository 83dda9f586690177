"""The tools of a workspace as its people see them: what each is, what is stated about it, what its reader may do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from apps.collections.models import Collection
from apps.tools.models import ToolEntry, ToolGrant
from apps.tools.policy.engine import Decision, Effect, ToolFacts
from apps.tools.toolset.bundles import Bundle, bundle_list
from apps.tools.toolset.guard import Guard
from apps.tools.toolset.selectors import guard_for
from apps.tools.toolset.tenant_bundles import tenant_bundles
from apps.tools.toolset.words import tool_words
from basics.errors import Missing
from tenancy.actors import Actor
from toolloop.tools import Tool

_PLAIN = ToolEntry()


@dataclass(frozen=True, slots=True)
class Listed:
    """One tool of the catalog.

    Attributes:
        tool: as the code or its source describes it.
        bundle: where it comes from; its name is the group that grants know.
        entry: what the workspace states about it; its fields are empty where it states nothing.
        decision: what becomes of the reader's call when it is about all of their collections.
        elsewhere: what a call about a single collection could have, when that is better; "" otherwise.
    """

    tool: Tool
    bundle: Bundle
    entry: ToolEntry
    decision: Decision
    elsewhere: Effect | Literal[""]

    @property
    def name(self) -> str:
        """Return the name by which models call it."""
        return self.tool.name

    @property
    def title(self) -> str:
        """Return the name for people."""
        words = tool_words(self.tool.name, self.bundle)
        return self.own_title if self.entry.title or words is None else str(words.title)

    @property
    def own_title(self) -> str:
        """Return the title that the workspace has given it, else its name: for programs, in no language."""
        return self.entry.title or self.tool.name

    @property
    def description(self) -> str:
        """Return what a model reads."""
        return self.entry.description or self.tool.description

    @property
    def summary(self) -> str:
        """Return what it does, in a line for people: the workspace's words, ours, or else the first of the description."""
        words = tool_words(self.tool.name, self.bundle)
        if words is not None and not self.entry.description:
            return str(words.description)
        return self.description.strip().split("\n", 1)[0]

    @property
    def facts(self) -> ToolFacts:
        """Return what grants may ask about it."""
        return self.bundle.facts(self.tool)

    @property
    def group(self) -> str:
        """Return the dotted group that grants may name."""
        return self.facts.group

    @property
    def source(self) -> str:
        """Return the first part of the group: where the tool comes from."""
        return self.group.partition(".")[0]

    @property
    def category(self) -> str:
        """Return what it is sorted under, may be empty."""
        return self.entry.category or self.tool.category

    @property
    def tags(self) -> Sequence[str]:
        """Return its tags."""
        return tuple(self.entry.tags) or self.tool.tags

    @property
    def is_enabled(self) -> bool:
        """Tell whether the workspace offers it at all."""
        return self.entry.is_enabled

    @property
    def timeout_s(self) -> float | None:
        """Return the seconds a call may take, None for the run's own limit."""
        return self.tool.timeout_s if self.entry.timeout_s is None else self.entry.timeout_s


@dataclass(frozen=True, slots=True)
class Choice:
    """What part of the catalog is asked for; an empty field does not narrow it.

    Attributes:
        q: words that must all stand in the name, title, description or tags, at least as parts of words.
        source, category, tag: exactly these.
        calls: "reads" or "changes".
        state: "on" or "off".
        effect: what the reader may do: allow, ask or deny.
    """

    q: str = ""
    source: str = ""
    category: str = ""
    tag: str = ""
    calls: str = ""
    state: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Facets:
    """What the catalog can be narrowed to, each with its number of tools."""

    sources: Mapping[str, int]
    categories: Mapping[str, int]
    tags: Mapping[str, int]


def catalog_read(*, actor: Actor) -> list[Listed]:
    """Return all tools of the workspace, also those switched off or denied; a constant number of queries.

    Args:
        actor: whose view it is: decisions are about this actor's calls.

    Raises:
        Denied: without the right ``tool.run``.
    """
    actor.require("tool.run")
    scope = scope_told_apart(actor)
    guard = guard_for(actor=actor, scope=scope)
    # Without a grant about single collections all of them are alike.
    single = [guard.narrowed([pk]) for pk in scope] if len(scope) > 1 else []
    entries = {row.name: row for row in ToolEntry.objects.visible_to(actor)}
    found: dict[str, Listed] = {}
    for bundle in guard.bundles:
        for tool in bundle.tools():
            if tool.name not in found:  # of two with one name the first is the one that is called
                entry = entries.get(tool.name, _PLAIN)
                found[tool.name] = _listed(tool, bundle, entry, guard, single)
    return list(found.values())


def catalog_get(*, actor: Actor, name: str) -> Listed:
    """Return one tool of the catalog. Raises Denied, Missing."""
    for listed in catalog_read(actor=actor):
        if listed.name == name:
            return listed
    raise Missing("tool")


def catalog_bundles(*, actor: Actor) -> Sequence[Bundle]:
    """Return where the workspace's tools come from."""
    return (*bundle_list(), *tenant_bundles(actor=actor))


def catalog_narrow(tools: Iterable[Listed], choice: Choice) -> list[Listed]:
    """Return the tools that a choice leaves; with words, those with a word in their name come first."""
    words = choice.q.casefold().split()
    found = [t for t in tools if _fits(t, choice) and all(w in _text(t) for w in words)]
    if words:
        found.sort(key=lambda t: not any(w in f"{t.name} {t.title}".casefold() for w in words))
    return found


def catalog_facets(tools: Iterable[Listed]) -> Facets:
    """Count the tools by what the catalog can be narrowed to."""
    sources: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    for listed in tools:
        sources[listed.source] += 1
        tags.update(listed.tags)
        if listed.category:
            categories[listed.category] += 1
    return Facets(dict(sources), dict(sorted(categories.items())), dict(sorted(tags.items())))


def scope_told_apart(actor: Actor) -> dict[int, str]:
    """Return the actor's collections that grants tell apart, and one that stands for all others.

    No grant names the others, so that every decision about them is the same.
    """
    if not actor.can("collection.read"):
        return {}
    named = ToolGrant.objects.visible_to(actor).filter(collection__isnull=False)
    rows = Collection.objects.visible_to(actor)
    apart = dict(rows.filter(pk__in=named.values("collection_id")).values_list("pk", "name"))
    other = rows.exclude(pk__in=named.values("collection_id")).order_by("pk")
    return apart | dict(other.values_list("pk", "name")[:1])


def _listed(tool: Tool, bundle: Bundle, entry: ToolEntry, guard: Guard, single: Sequence[Guard]) -> Listed:
    decision = guard.decision(tool, bundle)
    best = min((g.decision(tool, bundle) for g in single), key=_strength, default=decision)
    return Listed(tool, bundle, entry, decision, best.effect if best.strength < decision.strength else "")


def _strength(decision: Decision) -> tuple[int, int]:
    return decision.strength


def _fits(listed: Listed, choice: Choice) -> bool:
    calls = "changes" if listed.tool.side_effects else "reads"
    return (
        choice.source in ("", listed.source)
        and choice.category in ("", listed.category)
        and (not choice.tag or choice.tag in listed.tags)
        and choice.calls in ("", calls)
        and choice.state in ("", "on" if listed.is_enabled else "off")
        and choice.effect in ("", listed.decision.effect)
    )


def _text(listed: Listed) -> str:
    return " ".join((listed.name, listed.title, listed.description, *listed.tags)).casefold()
