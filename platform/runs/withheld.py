"""What a reader may not see of runs any more: the one filter of everything that is shown, told or sent of a stored run.

A document that was read in a run may be limited to others, or deleted, afterwards. From then on its words are left out for
whoever lost it, wherever they stand: in results of tools, arguments, reasoning, answers, titles, events, files. Whoever still
has the document sees everything. Rows keep the truth; they are judged at each reading, by the rights of that moment.

Which documents a run has read is known from ``ChunkRead``. A sentence is withheld when it says a word that only a withheld
passage has, and neither the question nor a passage that the reader may see; or when it cites such a passage. That withholds
too much rather than too little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.db.models import Exists, QuerySet, Value

from basics.texts import gettext_noop
from runs.models import ChunkRead, Run, ToolCall
from runs.transcript import FINISHED, REASONING, TEXT, Transcript
from tenancy.actors import Actor
from toolloop.messages import ModelMessage, ToolResult, UserMessage

HIDDEN = "A source you can't see"
SOURCE_LOST = gettext_noop(
    "A document this answer is based on was deleted, or limited to others, while it was being "
    "written. Ask again."
)
_MARK = f"[{HIDDEN[:1].lower()}{HIDDEN[1:]}]"
_WORD = re.compile(r"\w+", re.UNICODE)
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf\"/\\])")
_CITED = re.compile(r"\[(?:[cC]?\d{1,18})(?:[,;\s]+[cC]?\d{1,18})*\s?\]")
_ONE = re.compile(r"[cC]?\d{1,18}")
# A sentence with the markers behind it, or a line; white space between them stays.
_PIECE = re.compile(r"[^\n]*?(?:[.!?][\"'”’)\]]*(?:\s*\[[cC\d][^\]\n]{0,200}\])*(?=\s)|(?=\n)|\Z)")
_COMMON = frozenset(
    """
        a about after all also an and any are as at be been before but by can do does each for from had has
        have he her his how i if in into is it its may more most must no not of on one or other our she should
        so some such than that the their them then there these they this those to two under up was we were
        what when where which who will with would you your answer document documents page passage passages
        results text title source sources note query id ids
    """.split()
)

Judge = Callable[[Actor], Exists]
Related = Callable[[int, Collection[int]], Mapping[int, Collection[int]]]
LOST_RUN = "lost_run"
_ANY_RUN = -1  # in its place
_judges: list[Judge] = []
_related: list[Related] = []


def documents_judged_by(judge: Judge) -> None:
    """Have the room that keeps documents say who may read one: a condition over ``OuterRef("document_id")``, at start-up."""
    _judges[:] = [judge]


def runs_related_by(related: Related) -> None:
    """Have the room that keeps conversations say which runs go on from each other, at start-up.

    Args:
        related: gets a workspace's id and ids of runs; returns for each that belongs to others the ids of all of them.
    """
    _related[:] = [related]


@dataclass(frozen=True, slots=True)
class Withheld:
    """What one reader may not see of some runs. False where there is nothing.

    Attributes:
        documents: ids of the documents they read that the reader may not.
        chunks: ids of the passages of these.
        words: what these say and nothing else does, in lower case.
    """

    documents: frozenset[int] = frozenset()
    chunks: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Ids of these passages as models are told them."""
        return frozenset(f"c{chunk}" for chunk in self.chunks)

    def __bool__(self) -> bool:
        return bool(self.documents)

    def text(self, text: str, numbers: Collection[int] = ()) -> str:
        """Return a text with "a source you may not see" in place of each sentence that could tell of what is withheld.

        Args:
            numbers: of its sources that are withheld, where its markers are ``[1]``; those such as ``[c12]`` are known.
        """
        if not self.documents or not text:
            return text
        found: list[str] = []
        for piece in _pieces(text):
            if not self._tells(piece, numbers):
                found.append(piece)
                continue
            lead = piece[: len(piece) - len(piece.lstrip())]
            tail = piece[len(piece.rstrip()) :]
            body = _MARK + "".join(_CITED.findall(piece))
            if found and found[-1].strip() == body:
                found.append(tail if "\n" in tail else "")
            else:
                found.append(f"{lead}{body}{tail}")
        return "".join(found)

    def value(self, value: Any) -> Any:
        """Return JSON values with every text in them as ``text`` has it, and passages that are withheld left out."""
        if not self.documents:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: item if key in _PLAIN else self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value if not self.hides(item)]
        return value

    def content(self, content: str) -> str:
        """Return what a tool told a model: JSON as ``value`` has it, other text (and JSON that was cut) as ``text`` does."""
        if self.documents and content[:1] in ("{", "["):
            with suppress(ValueError):
                return json.dumps(self.value(json.loads(content)), ensure_ascii=False)
        return self.text(content)

    def hides(self, row: object) -> bool:
        """Tell whether a row of a search's results is of a document that is withheld."""
        return isinstance(row, Mapping) and (
            row.get("document_id") in self.documents
            or row.get("chunk_id") in self.chunks
            or str(row.get("id", "")) in self.names
        )

    def _tells(self, piece: str, numbers: Collection[int]) -> bool:
        if any(word in self.words for word in words_of(piece)):
            return True
        for marker in _CITED.findall(piece):
            for name in _ONE.findall(marker):
                if name[:1] in "cC":
                    if int(name[1:]) in self.chunks:
                        return True
                elif int(name) in numbers:
                    return True
        return False


NOTHING = Withheld()
# What programs go by, and no model or document writes.
_PLAIN = frozenset(
    {
        "step",
        "call_id",
        "id",
        "parent_id",
        "name",
        "status",
        "kind",
        "error_code",
        "decision",
        "stop",
        "model",
    }
)


def withheld_of(
    *, actor: Actor, runs: QuerySet[Any] | Iterable[int], told: Callable[[], Iterable[str]] = tuple
) -> Withheld:
    """Return what an actor may not see of some runs; one statement where that is nothing.

    Args:
        runs: their ids, or a query for them. Runs that go on from each other belong together: an answer says again what was
            read for the one before.
        told: gives texts that the reader has written; asked only where something is withheld.
    """
    if actor.kind == "system" or not _judges:
        return NOTHING
    rows = _lost(actor).filter(run_id__in=runs)
    lost = list(rows.values_list("document_id", "chunk_id", "document_name"))
    if not lost:
        return NOTHING
    documents = frozenset(document for document, _, _ in lost)
    chunks = frozenset(chunk for _, chunk, _ in lost if chunk is not None)
    hidden = {word for _, _, name in lost for word in words_of(name)}
    return _judged(actor.tenant_id, runs, documents, chunks, hidden, told)


def _judged(
    tenant_id: int,
    runs: QuerySet[Any] | Iterable[int],
    documents: frozenset[int],
    chunks: frozenset[int],
    hidden: set[str],
    told: Callable[[], Iterable[str]] = tuple,
) -> Withheld:
    """Return what some runs may not say any more of documents that they read.

    Args:
        hidden: words that tell of the documents, besides those of the passages that the runs were given.
    """
    hidden, known = set(hidden), set(_COMMON)
    calls = ToolCall.objects.filter(
        tenant_id=tenant_id, run_id__in=runs, payload__has_any_keys=["results", "documents"]
    )
    payloads: Iterable[Any] = calls.values_list("payload", flat=True)
    for payload in payloads:
        results, files = payload.get("results"), payload.get("documents")
        for row in results if isinstance(results, list) else ():
            if isinstance(row, dict):
                into = hidden if row.get("document_id") in documents else known
                into.update(words_of(" ".join(_texts(row))))
        if isinstance(files, list):  # lines of files: whose each one is, nobody has kept
            is_lost = any(isinstance(f, dict) and f.get("document_id") in documents for f in files)
            into = hidden if is_lost else known
            into.update(words_of(" ".join(_texts(payload))))
    for text in told():
        known.update(words_of(text))
    for request in Run.objects.filter(tenant_id=tenant_id, pk__in=runs).values_list(
        "request__history", flat=True
    ):
        for message in request if isinstance(request, list) else ():
            if isinstance(message, dict) and message.get("role") == "user":
                known.update(words_of(str(message.get("text", ""))))
    return Withheld(documents, chunks, frozenset(hidden - known))


def withheld_of_documents(
    *, tenant_id: int, documents: frozenset[int], passages: Mapping[int, str], names: Iterable[str]
) -> dict[int, Withheld]:
    """Return, for each run that read one of some documents and each that goes on from such, what nobody may see of it.

    Args:
        passages: id of a chunk of the documents -> its text. Results of tools may have been removed meanwhile.
        names: what the documents are called.
    """
    reads: dict[int, set[int | None]] = {}
    rows = ChunkRead.objects.filter(tenant_id=tenant_id, document_id__in=documents)
    for run, chunk in rows.values_list("run_id", "chunk_id"):
        reads.setdefault(run, set()).add(chunk)
    called = {word for name in names for word in words_of(name)}
    found: dict[int, Withheld] = {}
    for group in {frozenset(group) for group in _groups(tenant_id, set(reads)).values()}:
        read = set().union(*(reads.get(run, set()) for run in group))
        # Lines of a file, or of a passage that was cut anew since: any passage may be meant.
        is_known = read <= set(passages)
        texts = [text for pk, text in passages.items() if pk in read or not is_known]
        hidden = called.union(*(words_of(text) for text in texts))
        judged = _judged(tenant_id, sorted(group), documents, frozenset(passages), hidden)
        found |= dict.fromkeys(group, judged)
    return found


def tainted(actor: Actor, runs: QuerySet[Any] | Iterable[int]) -> Exists | Value:
    """Return the condition that an actor may not see all that some runs have read, to be asked along with other rows."""
    if actor.kind == "system" or not _judges:
        return Value(value=False)
    return Exists(_lost(actor).filter(run_id__in=runs))


def lost_statement(actor: Actor, runs: str, values: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]] | None:
    """Return the statement that has a row where ``withheld_of`` finds something, with its values.

    It is for whoever asks again and again. None where nothing is ever withheld.

    Args:
        runs: a statement for the ids of the runs that are judged.
        values: its own.
    """
    if actor.kind == "system" or not _judges:
        return None
    condition, own = _condition_among(_judges[0], actor)
    return f"SELECT 1 FROM ({runs}) asked(run) WHERE {condition} LIMIT 1", (*values, *own)  # noqa: S608 - both are ours


def runs_withheld(actor: Actor, runs: Iterable[int]) -> dict[int, Withheld]:
    """Return of some runs what an actor may not see of each; those of which they may see all have no entry.

    What was read for one answer may be said again in the next, so the runs of a conversation are judged together.
    """
    wanted = set(runs)
    if actor.kind == "system" or not _judges or not wanted:
        return {}
    groups = _groups(actor.tenant_id, wanted)
    read = {pk for group in groups.values() for pk in group}
    lost = _lost(actor).filter(run_id__in=read).values_list("run_id", flat=True)
    found = set(lost.distinct())
    return {pk: withheld_of(actor=actor, runs=sorted(group)) for pk, group in groups.items() if group & found}


def runs_lost(actor: Actor) -> set[int]:
    """Return all runs of which an actor may not see everything."""
    if actor.kind == "system" or not _judges:
        return set()
    lost = set(_lost(actor).values_list("run_id", flat=True).distinct())
    return {pk for group in _groups(actor.tenant_id, lost).values() for pk in group} if lost else lost


def _groups(tenant_id: int, runs: set[int]) -> dict[int, set[int]]:
    """Return for each run those that it is judged with."""
    groups = {pk: {pk} for pk in runs}
    for related in _related:
        for pk, others in related(tenant_id, runs).items():
            groups[pk] |= set(others)
    return groups


def _lost(actor: Actor) -> QuerySet[ChunkRead]:
    """Return what runs have read that an actor may not read now."""
    rows: QuerySet[ChunkRead] = ChunkRead.objects.filter(tenant_id=actor.tenant_id)
    return rows.exclude(_judges[0](actor)) if actor.can("collection.read") else rows


def lost_condition(actor: Actor) -> tuple[str, Mapping[str, Any]]:
    """Return the condition in SQL that a run has read what an actor may not read now, and its values by name.

    The run's id is ``LOST_RUN`` among them. It follows from the actor alone, so it is made once: Django takes a millisecond.
    """
    return _condition(_judges[0], actor) if _judges else ("false", {})


@lru_cache(maxsize=1024)
def _condition(judge: Judge, actor: Actor) -> tuple[str, Mapping[str, Any]]:
    statement, values = _of_any_run(actor)
    named = {LOST_RUN if value == _ANY_RUN else f"lost{at}": value for at, value in enumerate(values)}
    return f"EXISTS ({statement % tuple(f'%({name})s' for name in named)})", named


@lru_cache(maxsize=1024)
def _condition_among(judge: Judge, actor: Actor) -> tuple[str, tuple[Any, ...]]:
    """Return the condition that the run ``asked.run`` has read what an actor may not read now, and its values in order."""
    statement, values = _of_any_run(actor)
    places = tuple("asked.run" if value == _ANY_RUN else "%s" for value in values)
    return f"EXISTS ({statement % places})", tuple(value for value in values if value != _ANY_RUN)


def _of_any_run(actor: Actor) -> tuple[str, tuple[Any, ...]]:
    """Return the statement for what the run ``_ANY_RUN`` has read that an actor may not read now, and its values."""
    rows = _lost(actor).filter(run_id=_ANY_RUN).values_list("run_id")[:1]
    return rows.query.sql_with_params()


def events_withheld(events: Sequence[tuple[int, str, Any]], found: Withheld) -> list[tuple[int, str, Any]]:
    """Return a run's events without what is withheld.

    The words of a step come in pieces, which say nothing by themselves: of a run that has ended they are put together in the
    first of them, of one under way they are left out.
    """
    if not found:
        return list(events)
    is_whole = any(kind == FINISHED for _, kind, _ in events)
    said: dict[tuple[str, Any], str] = {}
    for _, kind, data in events:
        if kind in (TEXT, REASONING):
            key = kind, data.get("step")
            said[key] = said.get(key, "") + data["text"]
    shown: list[tuple[int, str, Any]] = []
    for seq, kind, data in events:
        if kind in (TEXT, REASONING):
            whole = said.pop((kind, data.get("step")), "")
            text = found.text(whole) if is_whole else _MARK if whole else ""
            shown.append((seq, kind, {**data, "text": text}))
        else:
            shown.append((seq, kind, found.value(data)))
    return shown


def transcript_withheld(transcript: Transcript, found: Withheld) -> Transcript:
    """Return what a watcher of a run sees, without what is withheld."""
    if not found:
        return transcript
    return replace(
        transcript,
        steps={
            step: replace(said, text=found.text(said.text), reasoning=found.text(said.reasoning))
            for step, said in transcript.steps.items()
        },
        waiting={pk: found.value(row) for pk, row in transcript.waiting.items()},
        decided={pk: found.value(row) for pk, row in transcript.decided.items()},
    )


def message_withheld(message: ModelMessage, found: Withheld) -> ModelMessage:
    """Return a message of a history without what is withheld; the reader's own words stay."""
    if not found or isinstance(message, UserMessage):
        return message
    if isinstance(message, ToolResult):
        return replace(message, content=found.content(message.content), payload=None)
    calls = tuple(
        replace(call, arguments=(told := found.value(call.arguments)), raw=json.dumps(told))
        for call in message.tool_calls
    )
    # What its provider wrote verbatim would say it again.
    return replace(message, text=found.text(message.text), tool_calls=calls, native=None)


def words_of(text: str) -> set[str]:
    """Return the words of a text in lower case; what JSON writes between them is none."""
    return {word.lower() for word in _WORD.findall(_ESCAPED.sub(" ", text)) if len(word) > 1}


def _pieces(text: str) -> Iterable[str]:
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        end = at if found is None else found.end()
        while end < len(text) and text[end].isspace():
            end += 1
        end = max(end, at + 1)
        yield text[at:end]
        at = end


def _texts(value: Any) -> Iterable[str]:
    """Return all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
