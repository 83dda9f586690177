"""A catalog of hundreds of tools: found by relevance, grouped, paged, and read into memory only when needed.

A catalog is shared by all runs of a process and holds what exists; which tools one run sees is the business of its
``ToolSession``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.meaning import (
    FAILED,
    Embedder,
    KnownVectors,
    Meaning,
    embedded_text,
    parameter_texts,
    scores_joined,
)
from toolloop.tools.ranking import WordIndex
from toolloop.tools.specs import spec_tokens
from toolloop.tools.tool import Tool

logger = logging.getLogger(__name__)

# Weights of the fields: a word of the name says more than one of the description, and least says what a parameter takes.
_NAME, _TAGS, _PLACE, _TEXT, _PARAMETER, _DETAIL = 3.0, 2.0, 1.5, 1.0, 1.0, 0.5
_SEMANTIC_DEPTH = 50
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
                    f"the catalog entry {self.name!r} loads a tool named {made.name!r}: give both the same "
                    f"name"
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
    """A page of a search; ``total`` counts the hits on all pages, ``note`` says what the search could not do."""

    hits: tuple[Hit, ...]
    total: int
    offset: int
    note: str = ""

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
        vectors: gives the tools' own vectors that were made before; see ``KnownVectors``.
        min_similarity: cosine below which a tool is no hit by meaning. The default fits small sentence models.

    Raises:
        ToolDefinitionError: when two tools have one name.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        embedder: Embedder | None = None,
        vectors: KnownVectors | None = None,
        min_similarity: float = 0.2,
    ) -> None:
        self._entries: dict[str, CatalogEntry] = {}
        self._meaning = Meaning(embedder, vectors) if embedder is not None else None
        self._min_similarity = min_similarity
        self._order: list[CatalogEntry] = []
        self._words: WordIndex | None = None
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
        self._words = None
        if self._meaning is not None:
            self._meaning.forget()
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
        likeness: Sequence[float | None] | None = None,
    ) -> Page:
        """Find tools by the words of their names, tags, groups, descriptions and parameters.

        Parameters count where the schema is loaded when the first search builds the index. A tool whose name was written
        out comes before all others.

        Args:
            query: words; "" lists all in order.
            category, tags, group: filters; a tool must carry every tag, and a group holds those below it.
            limit, offset: the page.
            min_score: hits below it are left out.
            likeness: cosine similarity of each tool to the query, in order, None where it is not known: then both scores
                are joined.
        """
        query = query[:_LONGEST_QUERY]
        chosen = self._chosen(category, tags, group)
        if not query.strip():
            return _page(_listed(chosen), min_score, limit, offset)
        hits = self._by_words(query, chosen)
        if likeness is not None:
            hits = self._joined(hits, {n: likeness[n] for n in chosen if n < len(likeness)})
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
        """Find tools by words and by meaning, both scores joined.

        Without an embedder, or when it fails (logged, and the page's ``note`` says so), words decide alone. Arguments as
        for ``search``.
        """
        likeness, note = None, ""
        if query.strip():
            if self._words is None:
                # Hundreds of schemas take a tenth of a second: not on the event loop.
                made = await asyncio.to_thread(self._index)
                self._words = made if len(made) == len(self._order) else None  # one came meanwhile
            likeness, note = await self._likeness(query[:_LONGEST_QUERY])
        page = self.search(
            query,
            category=category,
            tags=tags,
            group=group,
            limit=limit,
            offset=offset,
            min_score=min_score,
            likeness=likeness,
        )
        return replace(page, note=note)

    async def _likeness(self, query: str) -> tuple[list[float | None] | None, str]:
        if self._meaning is None or not self._order:
            return None, ""
        try:
            found = await self._meaning.likeness(query, self._texts)
        except Exception:
            logger.exception("the embedder failed; tools are searched by words alone")
            return None, FAILED
        if len(found) != len(self._order):
            self._meaning.forget()
        return found, ""

    def _joined(self, by_words: Sequence[Hit], likeness: Mapping[int, float | None]) -> list[Hit]:
        named = [hit for hit in by_words if hit.found_by == "name"]
        numbers = {entry.name: number for number, entry in enumerate(self._order)}
        words = {numbers[hit.entry.name]: hit.score for hit in by_words}
        alike = {n for n, like in likeness.items() if like is not None and like >= self._min_similarity}
        nearest = sorted(alike, key=lambda n: -(likeness[n] or 0.0))[:_SEMANTIC_DEPTH]
        scores = scores_joined(words, likeness)
        hits = [
            Hit(self._order[n], min(1.0, scores[n]), "meaning" if n in alike else "words")
            for n in sorted({*nearest, *(n for n in words if n in scores)})
        ]
        hits.sort(key=lambda hit: -hit.score)
        names = {hit.entry.name for hit in named}
        return [*named, *(hit for hit in hits if hit.entry.name not in names)]

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
            self._words = self._index()
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

    def _index(self) -> WordIndex:
        return WordIndex(_fields(entry) for entry in self._order)

    def _texts(self) -> list[str]:
        return [_embedded_text(entry) for entry in self._order]

    def __iter__(self) -> Iterator[CatalogEntry]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def _fields(entry: CatalogEntry) -> list[tuple[float, str]]:
    names, details = parameter_texts(entry.tool.parameters) if entry.is_loaded else ("", "")
    return [
        (_NAME, entry.name),
        (_TAGS, " ".join(entry.tags)),
        (_PLACE, f"{entry.category} {entry.group}"),
        (_TEXT, entry.description),
        (_PARAMETER, names),
        (_DETAIL, details),
    ]


def _embedded_text(entry: CatalogEntry) -> str:
    schema = entry.tool.parameters if entry.is_loaded else None
    return embedded_text(
        entry.name, entry.description, category=entry.category, tags=entry.tags, schema=schema
    )


def _listed(chosen: Mapping[int, CatalogEntry]) -> list[Hit]:
    return [Hit(entry, 1.0, "listing") for entry in chosen.values()]


def _page(hits: list[Hit], min_score: float, limit: int, offset: int) -> Page:
    kept = [hit for hit in hits if hit.score >= min_score]
    offset = max(0, offset)
    return Page(tuple(kept[offset : offset + max(0, limit)]), len(kept), offset)
