"""The content of a dataset row: what a version keeps and an export writes. Plain values with one canonical JSON form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from apps.datasets.models import DatasetRow, Difficulty, ExpectedBehaviour, QuestionType
from basics.errors import Invalid


@dataclass(frozen=True, slots=True)
class Source:
    """A span of a document that the answer rests on.

    Attributes:
        document_id, chunk_id: as they were; None for a source that is no document of this workspace.
        document: its name; ``path`` where it lies in its collection.
        char_start, char_end: characters of the document's text; ``quote`` is what stands there.
    """

    document: str
    quote: str
    char_start: int = 0
    char_end: int = 0
    document_id: int | None = None
    version: int | None = None
    chunk_id: int | None = None
    path: str = ""
    collection: str = ""
    page: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})


@dataclass(frozen=True, slots=True)
class ReasoningStep:
    """One step on the way to the answer: what was thought, which tool was called with what, and what it showed.

    The last step of an answer has no action; its thought is why the answer follows.
    """

    step: int
    thought: str = ""
    action: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    observation: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "thought": self.thought,
            "action": self.action,
            "input": dict(self.input),
            "observation": self.observation,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})


@dataclass(frozen=True, slots=True)
class Content:
    """A row's content.

    Attributes:
        scores: ``{"judge": who, "by": {score: {"value": 0 to 1, "level": 1 to 5, "evidence": text}}}``; {} when nobody judged.
        quality: the weighted scores, 0 to 1; None when nobody judged.
        extra: what a format has beside (``messages``, ``rejected``, ``contexts``), kept as it came.
    """

    question: str
    answer: str = ""
    type: str = QuestionType.FACTUAL.value
    difficulty: str = ""
    expected: str = ExpectedBehaviour.ANSWER.value
    language: str = ""
    rationale: str = ""
    steps: tuple[ReasoningStep, ...] = ()
    sources: tuple[Source, ...] = ()
    scores: Mapping[str, Any] = field(default_factory=dict)
    quality: float | None = None
    tags: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise Invalid("question_empty", "A row needs a question.")
        for name, value, known in (
            ("type", self.type, QuestionType.values),
            ("difficulty", self.difficulty, ["", *Difficulty.values]),
            ("expected", self.expected, ExpectedBehaviour.values),
        ):
            if value not in known:
                raise Invalid(
                    "invalid_row",
                    f"“{value}” is no {name} of a row; known are: {', '.join(k for k in known if k)}.",
                    data={"fields": {name: ["Choose one of the known values."]}},
                )

    def to_json(self) -> dict[str, Any]:
        """Return the canonical form: every field, always."""
        return {
            "question": self.question,
            "answer": self.answer,
            "type": self.type,
            "difficulty": self.difficulty,
            "expected": self.expected,
            "language": self.language,
            "rationale": self.rationale,
            "steps": [s.to_json() for s in self.steps],
            "sources": [s.to_json() for s in self.sources],
            "scores": dict(self.scores),
            "quality": self.quality,
            "tags": list(self.tags),
            "extra": dict(self.extra),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild what ``to_json`` wrote; names it does not know are left out. Raises Invalid."""
        values = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        try:
            return cls(
                **{
                    **values,
                    "steps": tuple(ReasoningStep.from_json(s) for s in data.get("steps") or ()),
                    "sources": tuple(Source.from_json(s) for s in data.get("sources") or ()),
                    "tags": tuple(data.get("tags") or ()),
                }
            )
        except (TypeError, AttributeError) as error:
            raise Invalid("invalid_row", f"This is no row of a dataset: {error}.") from error

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON (keys sorted, no blanks, UTF-8), in hexadecimal."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


COLUMNS = tuple(f.name for f in fields(Content))
"""Columns of ``DatasetRow`` that hold its content."""


def content_of(row: DatasetRow) -> Content:
    """Return a row's content."""
    return Content.from_json({name: getattr(row, name) for name in COLUMNS})


def content_columns(content: Content) -> dict[str, Any]:
    """Return the columns of a ``DatasetRow`` that hold a content, its hash among them."""
    return {**content.to_json(), "content_hash": content.hash}
