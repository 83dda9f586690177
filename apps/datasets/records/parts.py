"""The parts of a row: its kinds, steps, sources, scores, tool calls and messages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class RowType(StrEnum):
    """What kind of question a row asks."""

    FACTUAL = "factual"
    MULTI_HOP = "multi_hop"
    COMPARISON = "comparison"
    HOW_TO = "how_to"
    CODE = "code"
    UNANSWERABLE = "unanswerable"
    ADVERSARIAL = "adversarial"
    INJECTED = "injected"
    CONTRADICTORY = "contradictory"
    MULTI_TURN = "multi_turn"


class Difficulty(StrEnum):
    """How hard a question is meant to be."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


class Split(StrEnum):
    """Which part of a dataset a row belongs to."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


class Behaviour(StrEnum):
    """What a good answer does."""

    ANSWER = "answer"
    ABSTAIN = "abstain"
    REFUSE = "refuse"
    CITE_ALL = "cite_all"


EMPTY_ANSWERS = frozenset({Behaviour.ABSTAIN, Behaviour.REFUSE})
"""Behaviours whose rows need no reference answer: the right answer is that there is none."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the reasoning: a thought, and the tool call it led to.

    Attributes:
        step: its number, from 1.
        action: name of the tool, or "" for a step of thought alone.
        input: the tool's arguments.
        observation: what the tool answered.
        cost_usd: what the model's turn has cost that led to it; a turn of several calls has it at its first. None: not
            known. Left out of JSON and hash then, as ``sources`` are when there are none.
        sources: which of the row's sources the step has brought, or an answer's last step cites, counted from 1.
    """

    __pydantic_config__ = STRICT

    step: int
    thought: str = ""
    action: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    observation: str = ""
    cost_usd: Annotated[float, Field(ge=0)] | None = None
    sources: tuple[Annotated[int, Field(ge=1)], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordSource:
    """A passage that the answer rests on.

    Attributes:
        document: the document's name; with ``collection`` it is what a reader outside this installation sees.
        document_id, chunk_id: rows here; None for a row that came from elsewhere.
        start, end: characters of the document's text, end exclusive; both 0 where the place is not known.
        quote: the passage itself.
        page: its page in the document, from 1.
        license: of the document, as an SPDX identifier or in words; "" is unknown.
        url: where the document is from.
    """

    __pydantic_config__ = STRICT

    document: str
    quote: str
    collection: str = ""
    document_id: int | None = None
    chunk_id: int | None = None
    start: int = 0
    end: int = 0
    page: int | None = None
    license: str = ""
    url: str = ""

    @property
    def key(self) -> str:
        """Return what tells this passage from others: its document and place, or its words where no place is known."""
        name = f"{self.document_id or ''}|{self.collection}|{self.document}"
        place = f"{self.start}-{self.end}" if self.end else self.quote
        return hashlib.sha256(f"{name}|{place}".encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Score:
    """One score of a judge.

    Attributes:
        value: 0 to 1, as shown; None is "unscored", never 0.
        level: 1 to 5, as the judge gave it.
        evidence: the words of the answer or source that the judge points to.
        author: who scored, for example ``judge:six@3`` or ``person:17``.
    """

    __pydantic_config__ = STRICT

    name: str
    value: Annotated[float, Field(ge=0, le=1)] | None
    level: Annotated[int, Field(ge=1, le=5)] | None = None
    evidence: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call in a trace."""

    __pydantic_config__ = STRICT

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraceMessage:
    """A message of a trace.

    Attributes:
        tool_calls: what an assistant's message asks for.
        tool_call_id: for role ``tool``: the call that it answers.
    """

    __pydantic_config__ = STRICT

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that the trace could call.

    Attributes:
        parameters: JSON Schema of its arguments.
    """

    __pydantic_config__ = STRICT

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
