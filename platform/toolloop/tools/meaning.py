"""Search of tools by meaning: what of a tool is embedded, how its likeness to a question is told, and joined with words."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from toolloop.tools.ranking import VectorIndex, name_words

logger = logging.getLogger(__name__)

Vectors = Sequence[Sequence[float]]
Embedder = Callable[[list[str]], Vectors | Awaitable[Vectors]]
"""Turns texts into vectors; a plain function runs in a thread, because it computes."""
KnownVectors = Callable[[list[str]], Sequence[Sequence[float] | None]]
"""Gives the vectors of tools' texts that were made before, None for those that were not; must not compute."""

FAILED = "Search by meaning isn't available now: these were found by their words alone."
WORDS_SHARE = 0.3
"""Of the joined score; the rest is meaning's. Chosen on two public sets, measured on others: benchmarks/tool_choice.py."""
_QUERIES_KEPT = 256
_DEPTH = 8  # of objects in objects in a schema
_PARTS = ("properties", "items", "anyOf", "oneOf", "allOf", "$defs")


class Meaning:
    """Tells how like the tools of a catalog are to questions.

    Args:
        embedder: turns texts into vectors.
        known: where the tools' own vectors come from; the embedder then sees questions alone. Without it, all tools are
            embedded with the first question.
    """

    def __init__(self, embedder: Embedder, known: KnownVectors | None = None) -> None:
        self._embedder, self._known = embedder, known
        self._index: VectorIndex | None = None
        self._queries: dict[str, Sequence[float]] = {}

    def forget(self) -> None:
        """Read the tools' vectors again with the next question, because there are others now."""
        self._index = None

    async def likeness(self, query: str, texts: Callable[[], list[str]]) -> list[float | None]:
        """Return the cosine similarity of each tool to a question, None for tools without a vector yet.

        Args:
            texts: gives what is embedded of each tool, in order; called when that is needed.

        Raises:
            Exception: whatever the embedder raises.
            ValueError: the embedder gave another number of vectors than it was given texts.
        """
        # No lock: a catalog outlives event loops. Two first searches at once embed it twice, which is harmless.
        index = self._index
        if index is None:
            index = self._index = VectorIndex(await self._documents(texts()))
        if not index.has_any:
            return [None] * len(index)
        vector = self._queries.get(query)
        if vector is None:
            (vector,) = await self._embed([query])
            while len(self._queries) >= _QUERIES_KEPT:
                self._queries.pop(next(iter(self._queries)), None)
            self._queries[query] = vector
        return index.similarities(vector)

    async def _documents(self, texts: list[str]) -> Sequence[Sequence[float] | None]:
        if self._known is None:
            return await self._embed(texts)
        found = self._known(texts)
        if len(found) != len(texts):
            raise ValueError(f"there are {len(found)} known vectors for {len(texts)} texts")
        return found

    async def _embed(self, texts: list[str]) -> Vectors:
        found: Any
        if inspect.iscoroutinefunction(self._embedder):
            found = self._embedder(texts)
        else:
            found = await asyncio.to_thread(self._embedder, texts)
        vectors: Vectors = await found if inspect.isawaitable(found) else found
        if len(vectors) != len(texts):
            raise ValueError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
        return vectors


def scores_joined(words: Mapping[int, float], likeness: Mapping[int, float | None]) -> dict[int, float]:
    """Join both scores of the same tools: the weighted sum of each divided by its best.

    A tool without a vector is taken to mean as much as its words say, so that it is neither hidden nor put first.

    Args:
        words: above 0, of the tools that share a word with the question.
        likeness: cosine similarities of all tools, None where it is not known.

    Returns:
        Scores of all tools, 0 to 1.
    """
    best_words = max(words.values(), default=0.0)
    best_likeness = max((v for v in likeness.values() if v is not None), default=0.0)
    joined = {}
    for number, like in likeness.items():
        by_words = words.get(number, 0.0) / best_words if best_words > 0 else 0.0
        if like is None:
            by_meaning = by_words
        else:
            by_meaning = max(0.0, like) / best_likeness if best_likeness > 0 else 0.0
        joined[number] = WORDS_SHARE * by_words + (1 - WORDS_SHARE) * by_meaning
    return joined


def embedded_text(
    name: str,
    description: str,
    *,
    category: str = "",
    tags: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
) -> str:
    """Return what of a tool is embedded: its name in words, its description, and what its parameters are called."""
    names = ", ".join(dict.fromkeys(name_words(key) for key, _ in parameters_of(schema or {})))
    lines = (
        f"{name_words(name)}: {description}",
        f"Parameters: {names}" if names else "",
        " ".join(filter(None, (category, *tags))),
    )
    return "\n".join(filter(None, lines))


def parameter_texts(schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of all parameters, and what describes them: descriptions and the values they may have."""
    names, texts = [], []
    for name, part in parameters_of(schema):
        names.append(name)
        texts += [str(part.get("description") or ""), *map(str, _values(part))]
    return " ".join(names), " ".join(filter(None, texts))


def parameters_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each parameter of a JSON schema with what is said of it, also those inside of objects and lists."""
    waiting: list[tuple[int, Any]] = [(0, schema)]
    while waiting:
        depth, part = waiting.pop()
        if not isinstance(part, dict) or depth > _DEPTH:
            continue
        properties = part.get("properties")
        if isinstance(properties, dict):
            yield from ((str(k), v) for k, v in properties.items() if isinstance(v, dict))
        for key in _PARTS:
            below = part.get(key)
            inside = below.values() if key in ("properties", "$defs") and isinstance(below, dict) else below
            if isinstance(inside, dict):
                waiting.append((depth + 1, inside))
            elif inside is not None and not isinstance(inside, str | bool | int | float):
                waiting += [(depth + 1, one) for one in inside]


def _values(part: Mapping[str, Any]) -> Sequence[Any]:
    found = part.get("enum") or ([part["const"]] if "const" in part else [])
    items = part.get("items")
    if isinstance(items, dict) and isinstance(items.get("enum"), list):
        found = [*found, *items["enum"]]
    return found if isinstance(found, list) else []
