"""A catalog of hundreds of tools: found by relevance, grouped, paged, and read into memory only when needed.

A catalog is shared by all runs of a process and holds what exists; which tools one run sees is the business of its
``ToolSession``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from toolloop.tools.ranking import VectorIndex, WordIndex
from toolloop.tools.specs import spec_tokens
from toolloop.tools.tool import Tool, ToolDefinitionError

logger = logging.getLogger(__name__)

Vectors = Sequence[Sequence[float]]
Embedder = Callable[[list[str]], Vectors | Awaitable[Vectors]]
"""Turns texts into vectors; a plain function runs in a thread, because it computes."""

# Weights of the fields: a word of the name says more than one of the description.
_NAME, _TAGS, _PLACE, _TEXT = 3.0, 2.0, 1.5, 1.0
_SEMANTIC_DEPTH = 50
_QUERIES_KEPT = 256
_LONGEST_QUERY = 2_000  # Characters: a model that pastes a document must not make a search slow.


@dataclass(slots=True, eq=False)
class CatalogEntry:
    """One tool as the catalog knows it; its schema may not be loaded yet.

    Attributes:
        name, description, category, tags, group, version: as on ``Tool``.
        load: makes the tool when it is first needed.
    """

    name: str
    description: str
    load: Callable[[], Tool]
    category: str = ""
    tags: tuple[str, ...] = ()
    group: str = ""
    version: str = ""
    _tool: Tool | None = field(default=None, repr=False)
    _tokens: int | None = field(default=None, repr=False)

    @property
    def is_loaded(self) -> bool:
        """Tell whether the schema is in memory."""
        return self._tool is not None

    @property
    def tool(self) -> Tool:
        """Return the tool, loading it the first time.

        Raises:
            ToolDefinitionError: when what was loaded carries another name.
        """
        if self._tool is None:
            made = self.load()
            if made.name != self.name:
                raise ToolDefinitionError(
                    f"the catalog entry {self.name!r} loads a tool named {made.name!r}: name them alike"
                )
            self._tool = made
        return self._tool

    @property
    def token_count(self) -> int:
        """Return the estimated tokens of the declaration; loads the schema unless the count was given."""
        if self._tokens is None:
            self._tokens = spec_tokens(self.tool.spec())
        return self._tokens

    def is_in(self, group: str) -> bool:
        """Tell whether the entry is in a group or in one below it: "crm" holds "crm.contacts"."""
        return self.group == group or self.group.startswith(f"{group}.")


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool that was found; ``score`` lies in 0..1 and compares within one search only."""

    entry: CatalogEntry
    score: float
    found_by: Literal["name", "meaning", "words", "listing"]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a search; ``total`` counts the hits on all pages."""

    hits: tuple[Hit, ...]
    total: int
    offset: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names on this page."""
        return tuple(hit.entry.name for hit in self.hits)

    @property
    def has_more(self) -> bool:
        """Tell whether another page follows."""
        return self.offset + len(self.hits) < self.total


class Catalog:
    """All tools that exist, in the order in which they were added.

    Args:
        tools: added at once.
        embedder: turns texts into vectors for search by meaning; without one, words decide alone.
        min_similarity: cosine below which a tool is no hit by meaning. The default fits small sentence models.

    Raises:
        ToolDefinitionError: when two tools have one name.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        embedder: Embedder | None = None,
        min_similarity: float = 0.2,
    ) -> None:
        self._entries: dict[str, CatalogEntry] = {}
        self._embedder, self._min_similarity = embedder, min_similarity
        self._order: list[CatalogEntry] = []
        self._words: WordIndex | None = None
        self._vectors: VectorIndex | None = None
        self._queries: dict[str, Sequence[float]] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> CatalogEntry:
        """Add a tool that is there already."""
        return self._add(
            CatalogEntry(
                tool.name,
                tool.description,
                lambda: tool,
                category=tool.category,
                tags=tool.tags,
                group=tool.group,
                version=tool.version,
                _tool=tool,
            )
        )

    def add_lazy(
        self,
        name: str,
        description: str,
        load: Callable[[], Tool],
        *,
        category: str = "",
        tags: Sequence[str] = (),
        group: str = "",
        version: str = "",
        token_count: int | None = None,
    ) -> CatalogEntry:
        """Add a tool whose schema ``load`` reads when it is first needed."""
        entry = CatalogEntry(name, description, load, category, tuple(tags), group, version)
        entry._tokens = token_count
        return self._add(entry)

    def _add(self, entry: CatalogEntry) -> CatalogEntry:
        if entry.name in self._entries:
            raise ToolDefinitionError(f"two tools are named {entry.name!r}: rename one")
        self._entries[entry.name] = entry
        self._order.append(entry)
        self._words = self._vectors = None
        return entry

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the entry of that name, or None."""
        return self._entries.get(name)

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, loading its schema if need be, or None."""
        entry = self._entries.get(name)
        return None if entry is None else entry.tool

    def categories(self) -> dict[str, int]:
        """Count the tools of each category."""
        return dict(sorted(Counter(e.category for e in self._order if e.category).items()))

    def tags(self) -> dict[str, int]:
        """Count the tools that carry each tag."""
        return dict(sorted(Counter(tag for e in self._order for tag in e.tags).items()))

    def groups(self) -> dict[str, int]:
        """Count the tools of each group, those of the groups below it included."""
        counts: Counter[str] = Counter()
        for entry in self._order:
            parts = entry.group.split(".") if entry.group else []
            for depth in range(1, len(parts) + 1):
                counts[".".join(parts[:depth])] += 1
        return dict(sorted(counts.items()))

    def in_group(self, group: str) -> tuple[CatalogEntry, ...]:
        """Return the tools of a group and of those below it."""
        return tuple(entry for entry in self._order if entry.is_in(group))

    def token_count(self, names: Iterable[str] | None = None) -> int:
        """Sum the estimated tokens of some tools, of all when None. Loads schemas whose count was not given."""
        chosen = self._order if names is None else [self._entries[n] for n in names]
        return sum(entry.token_count for entry in chosen)

    def search(
        self,
        query: str = "",
        *,
        category: str = "",
        tags: Sequence[str] = (),
        group: str = "",
        limit: int = 10,
        offset: int = 0,
        min_score: float = 0.0,
    ) -> Page:
        """Find tools by the words of their names, tags, groups and descriptions.

        Args:
            query: words; "" lists all in order.
            category, tags, group: filters; a tool must carry every tag, and a group holds those below it.
            limit, offset: the page.
            min_score: hits below it are left out.
        """
        query = query[:_LONGEST_QUERY]
        chosen = self._chosen(category, tags, group)
        hits = self._by_words(query, chosen) if query.strip() else _listed(chosen)
        return _page(hits, min_score, limit, offset)

    async def find(
        self,
        query: str,
        *,
        category: str = "",
        tags: Sequence[str] = (),
        group: str = "",
        limit: int = 10,
        offset: int = 0,
        min_score: float = 0.0,
    ) -> Page:
        """Find tools by meaning first, then by words.

        A tool whose name was written out comes before all others. Without an embedder, or when it fails (logged),
        words decide alone. Arguments as for ``search``.
        """
        query = query[:_LONGEST_QUERY]
        similarities = await self._similarities(query) if query.strip() else None
        chosen = self._chosen(category, tags, group)
        if similarities is None:
            hits = self._by_words(query, chosen) if query.strip() else _listed(chosen)
            return _page(hits, min_score, limit, offset)
        by_words = self._by_words(query, chosen)
        by_meaning = [
            Hit(self._order[number], min(1.0, similarities[number]), "meaning")
            for number in chosen
            if number < len(similarities) and similarities[number] >= self._min_similarity
        ]
        by_meaning.sort(key=lambda hit: -hit.score)
        named = [hit for hit in by_words if hit.found_by == "name"]
        merged: dict[str, Hit] = {}
        for hit in (*named, *by_meaning[:_SEMANTIC_DEPTH], *by_words):
            merged.setdefault(hit.entry.name, hit)
        return _page(list(merged.values()), min_score, limit, offset)

    def _chosen(self, category: str, tags: Sequence[str], group: str) -> dict[int, CatalogEntry]:
        return {
            number: entry
            for number, entry in enumerate(self._order)
            if (not category or entry.category == category)
            and (not group or entry.is_in(group))
            and all(tag in entry.tags for tag in tags)
        }

    def _by_words(self, query: str, chosen: Mapping[int, CatalogEntry]) -> list[Hit]:
        if self._words is None:
            self._words = WordIndex(_fields(entry) for entry in self._order)
        exact = query.strip().lower()
        hits = []
        for number, score in self._words.scores(query).items():
            entry = chosen.get(number)
            if entry is not None and entry.name.lower() == exact:
                hits.append(Hit(entry, 1.0, "name"))
            elif entry is not None:
                hits.append(Hit(entry, score, "words"))
        hits.sort(key=lambda hit: (hit.found_by != "name", -hit.score))
        return hits

    async def _similarities(self, query: str) -> list[float] | None:
        if self._embedder is None or not self._order:
            return None
        try:
            # No lock: a catalog outlives event loops. Two first searches at once embed it twice, which is harmless.
            index = self._vectors
            if index is None:
                texts = [_embedded_text(entry) for entry in self._order]
                index = VectorIndex(await self._embed(texts))
                if len(index) == len(self._order):
                    self._vectors = index
            vector = self._queries.get(query)
            if vector is None:
                (vector,) = await self._embed([query])
                while len(self._queries) >= _QUERIES_KEPT:
                    self._queries.pop(next(iter(self._queries)), None)
                self._queries[query] = vector
            return index.similarities(vector)
        except Exception:
            logger.exception("the embedder failed; tools are searched by words alone")
            return None

    async def _embed(self, texts: list[str]) -> Vectors:
        if self._embedder is None:
            raise RuntimeError("there is no embedder")
        found: Any
        if inspect.iscoroutinefunction(self._embedder):
            found = self._embedder(texts)
        else:
            found = await asyncio.to_thread(lambda embed: embed(texts), self._embedder)
        vectors: Vectors = await found if inspect.isawaitable(found) else found
        if len(vectors) != len(texts):
            raise ValueError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
        return vectors

    def __iter__(self) -> Iterator[CatalogEntry]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def _fields(entry: CatalogEntry) -> list[tuple[float, str]]:
    return [
        (_NAME, entry.name),
        (_TAGS, " ".join(entry.tags)),
        (_PLACE, f"{entry.category} {entry.group}"),
        (_TEXT, entry.description),
    ]


def _embedded_text(entry: CatalogEntry) -> str:
    name = entry.name.replace("_", " ").replace("-", " ")
    return f"{name}: {entry.description}\n{' '.join((entry.category, *entry.tags))}".strip()


def _listed(chosen: Mapping[int, CatalogEntry]) -> list[Hit]:
    return [Hit(entry, 1.0, "listing") for entry in chosen.values()]


def _page(hits: list[Hit], min_score: float, limit: int, offset: int) -> Page:
    kept = [hit for hit in hits if hit.score >= min_score]
    offset = max(0, offset)
    return Page(tuple(kept[offset : offset + max(0, limit)]), len(kept), offset)
