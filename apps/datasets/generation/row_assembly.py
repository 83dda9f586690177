"""The last stage of an item: its row put together, and what of it other stages ask for too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from apps.datasets.generation import row_languages, turns
from apps.datasets.generation.prompt_injection import PLANTED
from apps.datasets.generation.work import Item, Next, Work
from apps.datasets.models import ItemState, QuestionType
from apps.datasets.records.columns import QUALITY
from apps.datasets.records.parts import (
    Behaviour,
    Difficulty,
    RecordSource,
    RowType,
    Score,
    Step,
    ToolCall,
    ToolSpec,
    TraceMessage,
)
from apps.datasets.records.record import Record

EXPECTED: Mapping[str, Behaviour] = {
    QuestionType.UNANSWERABLE: Behaviour.ABSTAIN,
    QuestionType.ADVERSARIAL: Behaviour.REFUSE,
    QuestionType.CONTRADICTORY: Behaviour.CITE_ALL,
}


async def assemble(work: Work, item: Item) -> Next:
    """Put the row together."""
    data = item.data
    persona, style = ("", "") if work.model.by_rules else work.settings.voice(item.slot)
    facts = {"persona": persona, "style": style, PLANTED: data.get("planted", "")}
    meta: dict[str, Any] = {
        QUALITY: data["quality"],
        "made_by": "rules" if work.model.by_rules else work.model.name,
        "judged_by": "rules" if work.judge.by_rules else work.judge.name,
        "repairs": item.repairs,
        "chunks_used": data["used"],
        **{name: value for name, value in facts.items() if value},
        **({"cost_usd": float(item.spent_usd)} if item.spent_usd else {}),
        **turns.facts_of(work, data),
    }
    sources = _row_sources(item)
    record = Record(
        question=data["question"],
        answer=data["answer"],
        rejected=data["earlier"][0]["answer"] if data.get("earlier") else "",
        type=RowType(item.type),
        difficulty=Difficulty(item.difficulty),
        expected=expected_of(item),
        rationale=data["rationale"],
        steps=tuple(_steps(data["steps"], sources)),
        sources=tuple(sources),
        scores=tuple(Score(**score) for score in data["scores"]),
        tags=("rules",) if work.model.by_rules else (),
        messages=tuple(
            TraceMessage(**{**m, "tool_calls": tuple(ToolCall(**c) for c in m["tool_calls"])})
            for m in data["messages"]
        ),
        language=language_of(work, data),
        tools=tuple(ToolSpec(spec.name, spec.description, spec.parameters) for spec in work.toolset.specs()),
        meta=meta,
    )
    return Next(ItemState.KEPT, record=record)


def expected_of(item: Item) -> Behaviour:
    return EXPECTED.get(item.type, Behaviour.ANSWER)


def language_of(work: Work, data: Mapping[str, Any]) -> str:
    if work.model.by_rules:
        return "en"  # The templates are.
    return data["language"] or row_languages.detected(f"{data['question']} {data['answer']}")


def sources_read(values: list[dict[str, Any]]) -> list[RecordSource]:
    return [RecordSource(**value) for value in values]


def sources_used(item: Item) -> list[RecordSource]:
    """Return the passages that the answer uses, as they were found."""
    by_id = {source.chunk_id: source for source in sources_read(item.data["found"])}
    return [by_id[pk] for pk in item.data["used"] if pk in by_id]


def _row_sources(item: Item) -> list[RecordSource]:
    """Return the spans that the question was made from, then the other passages that the answer uses."""
    gold = sources_read(item.data["gold"])
    known = {source.chunk_id for source in gold}
    return [*gold, *(source for source in sources_used(item) if source.chunk_id not in known)]


def _steps(steps: Sequence[Mapping[str, Any]], sources: Sequence[RecordSource]) -> Iterator[Step]:
    """Yield the steps, with the numbers of the row's sources for the chunks that each has brought."""
    for step in steps:
        chunks = set(step.get("sources", ()))
        numbers = [at for at, source in enumerate(sources, start=1) if source.chunk_id in chunks]
        yield Step(**{**step, "sources": tuple(numbers)})
