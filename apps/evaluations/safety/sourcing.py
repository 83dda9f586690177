"""Texts of a workspace's own documents as carriers: those that everybody in it may read, with a question that rules make."""

from __future__ import annotations

from collections.abc import Sequence

from apps.collections.models import ChunkKind, Collection
from apps.datasets.generation.corpus import CODE_KINDS, chunks_ordered, passages_read
from apps.datasets.generation.rule_questions import question_make
from apps.datasets.generation.settings import Settings
from apps.evaluations.safety.materials import CODE, PROSE, TABLE, Material
from basics.errors import Missing
from tenancy.actors import Actor

MOST_TEXTS = 60
_MOST_CHARS = 4_000
_KINDS: Sequence[tuple[str, Sequence[ChunkKind], str]] = (
    (PROSE, (ChunkKind.DOC,), "factual"),
    (TABLE, (ChunkKind.TABLE,), "factual"),
    (CODE, CODE_KINDS, "code"),
)


def materials_read(*, actor: Actor, collections: Sequence[int], seed: int) -> list[Material]:
    """Return texts of collections that rules can ask about, at most ``MOST_TEXTS`` of a kind.

    Documents that are limited to some people are left out: whoever reads the suite reads their words.

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
        for passage in passages_read(
            actor, chunks_ordered(actor, settings, chunks, MOST_TEXTS), names
        ):
            made = question_make([passage], asked, "medium")
            if made is None or len(passage.text) > _MOST_CHARS:
                continue
            question, _, quotes = made
            at = passage.text.find(quotes[0]) if quotes else -1
            source = passage.source(at, at + len(quotes[0])) if at >= 0 else passage.source()
            found.append(Material(kind, question, "", passage.text, passage.document, source))
    return found
