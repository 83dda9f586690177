"""Formats of question and answer alone: Alpaca, preference pairs (DPO), RAGAS, promptfoo's test cases, our own lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import Card, RowError, Rows
from apps.datasets.formats.chat import from_conversation
from apps.datasets.formats.lines import EXCERPT, JsonLines, dump, objects
from apps.datasets.formats.openai_chat import message_in
from apps.datasets.records.assembly import assemble
from apps.datasets.records.facts import questions_of, record_with_facts, values_with_facts
from apps.datasets.records.parts import EMPTY_ANSWERS, Behaviour, RecordSource, TraceMessage
from apps.datasets.records.record import MAX_BYTES, Record, check, from_values, to_values
from basics.errors import Invalid
from basics.texts import gettext as _


class Jsonl(JsonLines):
    """Our own form: everything a record has with its facts, and its steps and answer once more as one text with special tokens.

    An object may hold several questions about one passage; see ``row_facts``. They are written as rows of their own.
    """

    name = "jsonl"
    title = "JSON Lines"
    purpose = gettext_noop(
        "Everything a row has, one JSON object per line. Best for keeping and re-importing."
    )

    def encode(self, record: Record) -> dict[str, Any]:
        """Return every field, and ``text``; a row that is too long for both leaves it out, and loses nothing."""
        values = values_with_facts(record)
        text = {"text": assemble(record.steps, record.answer)}
        return {**values, **text} if len(dump(values)) + len(dump(text)) <= MAX_BYTES else values

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return the record of its fields; the text says nothing that they do not."""
        return record_with_facts({name: value for name, value in values.items() if name != "text"})

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield the records of a file of lines, or of one array; several where an object holds several questions."""
        with path.open("rb") as file:
            for number, text in objects(file):
                if isinstance(text, RowError) or b'"questions"' not in text:
                    yield text if isinstance(text, RowError) else self._read_one(number, text)
                    continue
                try:
                    rows = list(questions_of(json.loads(text)))
                except Invalid as error:
                    yield RowError(number, error.message, text[:EXCERPT].decode("utf-8", "replace"))
                    continue
                except (ValueError, RecursionError, AttributeError):
                    yield self._read_one(number, text)  # which says what is wrong with it
                    continue
                for row in rows:
                    yield self._read_one(number, dump(row))


class Alpaca(JsonLines):
    """``instruction``, ``input``, ``output``: one JSON array, as the original file is.

    Source: github.com/tatsu-lab/stanford_alpaca. The input is read as a paragraph after the instruction.
    """

    name = "alpaca"
    title = "Alpaca"
    purpose = gettext_noop("Instruction tuning: question and answer only.")
    suffix = ".json"
    media_type = "application/json"

    def write(self, rows: Rows, card: Card) -> Iterator[bytes]:
        """Yield one array, an item for each record with an answer."""
        between = b"[\n"
        for line in super().write(rows, card):
            yield between + line.rstrip(b"\n")
            between = b",\n"
        yield b"\n]\n" if between == b",\n" else b"[]\n"

    def encode(self, record: Record) -> dict[str, Any] | None:
        """Return instruction and output; None without an answer."""
        if not record.answer.strip():
            return None
        return {"instruction": record.question, "input": "", "output": record.answer}

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return question and answer."""
        more = values.get("input") or ""
        question = f"{values['instruction']}\n\n{more}" if more else values["instruction"]
        return from_values({"question": question, "answer": values["output"]})


class PreferenceFormat(JsonLines):
    """``prompt``, ``chosen``, ``rejected`` as messages: TRL's conversational preference format.

    Source: huggingface.co/docs/trl/dataset_formats. The three as plain strings are read as well.
    """

    name = "preference"
    title = gettext_noop("Preference pairs")
    purpose = gettext_noop(
        "DPO and reward models: the answer and a worse one. Rows without a worse answer are left out."
    )

    def encode(self, record: Record) -> dict[str, Any] | None:
        """Return the three; None without two answers."""
        if not (record.answer.strip() and record.rejected.strip()):
            return None
        return {
            "prompt": [{"role": "user", "content": record.question}],
            "chosen": [{"role": "assistant", "content": record.answer}],
            "rejected": [{"role": "assistant", "content": record.rejected}],
        }

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return question and both answers."""
        prompt, chosen, rejected = values["prompt"], values["chosen"], values["rejected"]
        if isinstance(prompt, str):
            return from_values({"question": prompt, "answer": chosen, "rejected": rejected})
        before = [message_in(message) for message in prompt]
        good = from_conversation([*before, *_answer(chosen)])
        worse = from_conversation([*before, *_answer(rejected)])
        return from_values({**to_values(good), "rejected": worse.answer})


def _answer(messages: list[Mapping[str, Any]]) -> list[TraceMessage]:
    if not messages:
        raise Invalid("row_invalid", _("Chosen and rejected each need an answer."))
    return [message_in(message) for message in messages]


class Ragas(JsonLines):
    """A sample of RAGAS' ``EvaluationDataset``: ``user_input``, ``reference``, ``reference_contexts``.

    Source: docs.ragas.io, evaluation schema (SingleTurnSample).
    """

    name = "ragas"
    title = "RAGAS"
    purpose = gettext_noop(
        "Evaluations with RAGAS: question, reference answer and passages. Places of passages are left out."
    )

    def encode(self, record: Record) -> dict[str, Any]:
        """Return the sample."""
        contexts = [source.quote for source in record.sources]
        return {"user_input": record.question, "reference": record.answer, "reference_contexts": contexts}

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return question, answer, and passages without a document."""
        contexts = values.get("reference_contexts") or values.get("retrieved_contexts") or []
        answer = values.get("reference") or values.get("response") or ""
        return _without_answer(
            Record(
                question=values["user_input"],
                answer=answer,
                sources=tuple(RecordSource("", quote) for quote in contexts),
            )
        )


class Promptfoo(JsonLines):
    """Test cases of promptfoo as lines: ``tests: file://tests.jsonl`` in its configuration.

    Source: promptfoo.dev/docs/configuration/test-cases. An answer is judged by ``factuality``, an abstention or a refusal
    by ``llm-rubric``; ``metadata`` tells type, difficulty and expected behaviour.
    """

    name = "promptfoo"
    title = gettext_noop("promptfoo tests")
    purpose = gettext_noop(
        "Test cases for promptfoo (tests: file://tests.jsonl). Traces and places of sources are left out."
    )

    def encode(self, record: Record) -> dict[str, Any]:
        """Return a test case whose variables are question and answer."""
        if record.answer.strip():
            asserted = {"type": "factuality", "value": record.answer}
        elif record.expected in EMPTY_ANSWERS:
            asserted = {"type": "llm-rubric", "value": _RUBRICS[record.expected]}
        else:
            asserted = {"type": "context-recall", "value": "\n".join(s.quote for s in record.sources)}
        return {
            "description": record.question[:80],
            "vars": {"question": record.question, "answer": record.answer},
            "assert": [asserted],
            "metadata": {
                "id": record.id,
                "type": str(record.type),
                "difficulty": str(record.difficulty),
                "expected": str(record.expected),
                "contexts": json.dumps([s.quote for s in record.sources], ensure_ascii=False),
            },
        }

    def decode(self, values: Mapping[str, Any]) -> Record:
        """Return the question and answer of a test case."""
        known, meta = values["vars"], values.get("metadata") or {}
        contexts = json.loads(meta.get("contexts") or "[]")
        answer = known.get("answer") or next(
            (a["value"] for a in values.get("assert") or () if a["type"] in _WORDED), ""
        )
        found = {
            "question": known["question"],
            "answer": answer,
            **{name: meta[name] for name in ("id", "type", "difficulty", "expected") if meta.get(name)},
            "sources": [{"document": "", "quote": quote} for quote in contexts],
        }
        return from_values(found)


_RUBRICS = {
    Behaviour.ABSTAIN: "Says that the documents don't answer the question, and invents nothing.",
    Behaviour.REFUSE: "Refuses to do what is asked.",
}
_WORDED = ("factuality", "equals", "contains", "icontains", "similar")


def _without_answer(record: Record) -> Record:
    """Return the record, checked; one with neither answer nor source is a question whose right answer is none."""
    if not record.answer.strip() and not record.sources:
        return check(Record(question=record.question, expected=Behaviour.ABSTAIN))
    return check(record)
