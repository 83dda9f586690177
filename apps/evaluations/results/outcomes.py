"""What a trial keeps of an answer, as JSON and back, and where the labelled passages of a row stand now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Q

from apps.collections.models import Chunk, Document, DocumentStatus
from apps.collections.search import SearchHit
from apps.conversations.citations.markers import answer_cite, passages_of
from apps.datasets.records.parts import RecordSource
from apps.datasets.records.record import Record
from apps.evaluations.models import Trial
from apps.evaluations.scorers.base import NO_ANSWER, Call, Label, ScoredPassage, TargetResult
from apps.evaluations.scorers.retrieval import gains_of
from basics.texts import gettext_noop
from runs.models import Run, RunStatus, ToolCall, ToolCallStatus
from runs.selectors import payload_list, quotes_named
from tenancy.actors import Actor

_MOST_TEXT = 4_000
_QUOTE_HEAD = 80
_ENDS: dict[str, str] = {
    RunStatus.STOPPED: gettext_noop("The run was stopped."),
    RunStatus.FAILED: gettext_noop("The run failed."),
}


def outcome_json(outcome: TargetResult) -> dict[str, Any]:
    """Return what ``Trial.outcome`` keeps; the answer itself has a column."""
    kept = asdict(outcome)
    for name in ("text", "latency_ms", "cost_usd", "error"):
        del kept[name]
    for label in kept["labels"]:
        label["chunks"] = [[key, gain] for key, gain in label["chunks"].items()]
    return kept


def outcome_of(trial: Trial) -> TargetResult:
    """Return what a trial's target gave."""
    kept = trial.outcome
    return TargetResult(
        text=trial.answer,
        raw=kept.get("raw", ""),
        limit=kept.get("limit"),
        is_reached=kept.get("is_reached", False),
        retrieved=[ScoredPassage(**p) for p in kept.get("retrieved", ())],
        citations=[ScoredPassage(**p) for p in kept.get("citations", ())],
        calls=[Call(**c) for c in kept.get("calls", ())],
        labels=[
            Label(**{**label, "chunks": {int(key): gain for key, gain in label["chunks"]}})
            for label in kept.get("labels", ())
        ],
        latency_ms=trial.latency_ms,
        cost_usd=None if trial.cost_usd is None else float(trial.cost_usd),
        error=trial.error,
    )


def hit_passages(hits: Iterable[SearchHit]) -> list[ScoredPassage]:
    """Return the passages that a search found."""
    return [
        ScoredPassage(
            hit.chunk_id,
            hit.document_id,
            hit.char_start,
            hit.char_end,
            hit.text[:_MOST_TEXT],
            hit.document_name,
        )
        for hit in hits
    ]


def run_outcome(run: Run, labels: Sequence[Label], *, shown: str) -> TargetResult:
    """Return what a run of the loop gave: answer with numbered citations, passages found, calls made.

    Args:
        shown: the answer as people read it; an answer with a form is kept as it was written too.
    """
    passages = passages_of(payload_list(run), quotes_named(run))
    cited = answer_cite(shown, passages)
    calls = ToolCall.objects.filter(tenant_id=run.tenant_id, run=run).order_by("step", "pk")
    seconds = (
        (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else None
    )
    return TargetResult(
        text=cited.text,
        raw=run.answer if shown != run.answer else "",
        limit=run.limit_reached,
        retrieved=[
            ScoredPassage(
                p.chunk_id,
                p.document_id,
                p.char_start,
                p.char_start + len(p.text),
                p.text[:_MOST_TEXT],
                p.document_name,
            )
            for p in passages.values()
        ],
        citations=[
            ScoredPassage(
                s.passage.chunk_id,
                s.passage.document_id,
                s.char_start,
                s.char_end,
                s.quote,
                s.passage.document_name,
            )
            for s in cited.sources
        ],
        calls=[
            Call(name, arguments or {}, status != ToolCallStatus.SUCCEEDED)
            for name, arguments, status in calls.values_list("name", "arguments", "status")
        ],
        labels=labels,
        latency_ms=None if seconds is None else seconds * 1000,
        cost_usd=None if run.cost_usd is None else float(run.cost_usd),
        error="" if run.status == "completed" else run.error_message or _ENDS.get(run.status, NO_ANSWER),
    )


def labels_map(actor: Actor, row: Record, collections: Sequence[int] | None) -> list[Label]:
    """Return the row's passages with the current chunks that hold them, in at most two queries.

    In another collection than its own a passage is looked for in the same file, or else in one of the same name. It is
    looked for where it stood; where the text there is another by now (a new version of the document, another
    reader), by its words in the same document. One that is nowhere has no chunks.

    Args:
        collections: where passages without a known document are looked for by its name; None for everywhere.
    """
    if not row.sources:
        return []
    known = {s.document_id for s in row.sources if s.document_id is not None}
    names = {s.document for s in row.sources}
    everywhere = Document.objects.visible_to(actor).filter(status=DocumentStatus.READY)
    same_file = Q(sha256__in=everywhere.filter(pk__in=known).values("sha256"))
    there = Q(name__in=names) | same_file
    if collections is not None:
        there &= Q(collection_id__in=collections)
    rows = everywhere.filter(Q(pk__in=known) | there)
    every = list(rows.values("pk", "name", "path", "collection_id", "live_to", "sha256"))
    found = [d for d in every if collections is None or d["collection_id"] in collections]
    places = {d["pk"]: (d["collection_id"], d["path"]) for d in found}
    files = {d["pk"]: d["sha256"] for d in every}
    live = [d for d in found if d["live_to"] is None]
    wanted: list[set[int]] = []
    for source in row.sources:
        # A document that was replaced stands for its file: its live version is what is searched.
        place, file = places.get(source.document_id or 0), files.get(source.document_id or 0)
        if place is not None:
            wanted.append({d["pk"] for d in live if (d["collection_id"], d["path"]) == place})
        else:
            same = {d["pk"] for d in live if d["sha256"] == file}
            wanted.append(same or {d["pk"] for d in live if d["name"] == source.document})
    texts = _chunks(actor, row.sources, wanted)
    return [
        _label(source, [c for pk in pks for c in texts.get(pk, ())])
        for source, pks in zip(row.sources, wanted, strict=True)
    ]


_Chunk = tuple[int, int, int, int, str]  # id, document, start, end, text


def _chunks(
    actor: Actor, sources: Sequence[RecordSource], wanted: Sequence[set[int]]
) -> dict[int, list[_Chunk]]:
    near = Q(pk__in=[])
    for source, pks in zip(sources, wanted, strict=True):
        there = Q(text__regex=_head(source.quote))
        if source.end:
            there |= Q(char_start__lt=source.end, char_end__gt=source.start)
        near |= Q(document_id__in=pks) & there
    rows = Chunk.objects.visible_to(actor).filter(near, is_disabled=False)
    found: dict[int, list[_Chunk]] = {}
    for chunk in rows.order_by("pk").values_list("pk", "document_id", "char_start", "char_end", "text"):
        found.setdefault(chunk[1], []).append(chunk)
    return found


def _label(source: RecordSource, chunks: Sequence[_Chunk]) -> Label:
    at_place = [c for c in chunks if c[2] < source.end and source.start < c[3]]
    if any(_stands(source, c) for c in at_place):
        spans = [(c[0], c[2], c[3]) for c in at_place]
        gains = gains_of(source.start, source.end, spans)
        return Label(at_place[0][1], source.start, source.end, source.quote, gains)
    head = re.compile(_head(source.quote))
    for pk, document, start, _, text in chunks:
        if found := head.search(text):
            begin = start + found.start()
            end = begin + len(source.quote)
            near = [(c[0], c[2], c[3]) for c in chunks if c[1] == document]
            gains = gains_of(begin, end, near) or {pk: 1.0}
            return Label(document, begin, end, source.quote, gains)
    return Label(source.document_id, source.start, source.end, source.quote, {})


def _head(quote: str) -> str:
    """Return the pattern of how a quote begins; its lines may be joined, or broken elsewhere than in the document."""
    words = quote[:_QUOTE_HEAD].split()
    return r"\s+".join(re.escape(word) for word in words) or r"\Z"


def _stands(source: RecordSource, chunk: _Chunk) -> bool:
    """Return whether the chunk's part of the passage is still what was quoted, letter by letter."""
    _, _, start, end, text = chunk
    low, high = max(source.start, start), min(source.end, end)
    part, quote = _letters(text[low - start : high - start]), _letters(source.quote)
    return bool(part) and (part in quote or quote in part)


def _letters(text: str) -> str:
    return "".join(ch for ch in text if ch.isalnum())
