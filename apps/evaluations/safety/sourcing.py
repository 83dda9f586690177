"""Texts of a workspace's own as carriers: documents that everybody in it may read, and rows of its datasets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from apps.collections.models import ChunkKind, Collection
from apps.datasets.generation.corpus import CODE_KINDS, chunks_ordered, passages_read
from apps.datasets.generation.rule_questions import question_make
from apps.datasets.generation.settings import Settings
from apps.datasets.models import DatasetVersion
from apps.datasets.records.parts import Behaviour, RowType
from apps.datasets.rows.selectors import version_rows
from apps.evaluations.attacks.materials import CODE, PROSE, TABLE, Material
from basics.errors import Missing
from tenancy.actors import Actor

MOST_TEXTS = 60
MOST_ROWS = 500
CONTEXT = "context"
"""Where ``Record.meta`` has the text that a row asks about, as imports of SQuAD and BIPIA keep it."""
_MOST_CHARS = 4_000
_KINDS: Sequence[tuple[str, Sequence[ChunkKind], str]] = (
    (PROSE, (ChunkKind.DOC,), "factual"),
    (TABLE, (ChunkKind.TABLE,), "factual"),
    (CODE, CODE_KINDS, "code"),
)


def materials_read(*, actor: Actor, collections: Sequence[int], seed: int) -> list[Material]:
    """Return texts of collections that rules can ask about, at most ``MOST_TEXTS`` of a kind.

    Restricted documents are excluded, because everyone with the suite would see their text.

    Raises:
        Missing: a collection is not there for the actor.
    """
    actor.require("collection.read")
    rows = Collection.objects.visible_to(actor).filter(pk__in=collections)
    names = dict(rows.values_list("pk", "name"))
    if len(names) != len(set(collections)):
        raise Missing("collection")
    settings = Settings(collections=tuple(sorted(names)), seed=seed)
    found = []
    for kind, chunks, asked in _KINDS:
        for passage in passages_read(actor, chunks_ordered(actor, settings, chunks, MOST_TEXTS), names):
            made = question_make([passage], asked, "medium")
            if made is None or len(passage.text) > _MOST_CHARS:
                continue
            question, quotes = made.question, made.quotes
            at = passage.text.find(quotes[0]) if quotes else -1
            source = passage.source(at, at + len(quotes[0])) if at >= 0 else passage.source()
            found.append(Material(kind, question, "", passage.text, passage.document, source))
    return found


def rows_read(*, actor: Actor, version: int) -> list[Material]:
    """Return what the first rows of a dataset's version ask about, with their own questions and answers.

    Rows without a text, of several turns, or whose right answer is to give none, are left out.

    Raises:
        Missing: the version is not there for the actor.
    """
    actor.require("dataset.read")
    row = DatasetVersion.objects.visible_to(actor).filter(pk=version).first()
    if row is None:
        raise Missing("version")
    found = []
    for member in islice(version_rows(actor=actor, version=row), MOST_ROWS):
        record = member.record
        text = record.meta.get(CONTEXT)
        if not isinstance(text, str):
            text = "\n\n".join(source.quote for source in record.sources)
        if record.expected != Behaviour.ANSWER or record.messages or not 0 < len(text.strip()) <= _MOST_CHARS:
            continue
        kind = CODE if record.type == RowType.CODE else TABLE if _is_table(text) else PROSE
        name = record.sources[0].document if record.sources else "document"
        source = record.sources[0] if record.sources else None
        found.append(Material(kind, record.question, record.answer, text, name, source))
    return found


def _is_table(text: str) -> bool:
    return sum(line.count("|") > 1 for line in text.splitlines()) > 2
