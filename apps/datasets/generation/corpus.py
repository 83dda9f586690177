"""The passages that rows are made from: which there are, which belong together, and what they say.

Only live documents that everybody in the workspace may see: whoever reads the dataset reads their quotes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet, TextField, Value, Window
from django.db.models.functions import MD5, Cast, Concat, Length, RowNumber

from apps.collections.models import Chunk, ChunkKind, ChunkLink, Document, DocumentStatus
from apps.datasets.generation.disagreeing import disagreement
from apps.datasets.generation.plan import Slot
from apps.datasets.generation.settings import Settings
from apps.datasets.models import QuestionType
from apps.datasets.records.parts import RecordSource
from tenancy.actors import Actor
from toolloop.best_sentences import content_terms

LEAST_CHARS = 200
COMPARED = 200
"""Passages among which partners for comparisons are looked for."""
CODE_KINDS = (ChunkKind.FUNCTION, ChunkKind.CLASS)
PROSE_KINDS = (ChunkKind.DOC, ChunkKind.TABLE)
_OPEN: Mapping[str, object] = {
    "status": DocumentStatus.READY,
    "is_restricted": False,
    "live_from__isnull": False,
    "live_to__isnull": True,
}
"""What a document must be for rows to be made from it."""
_BY_ORDER = ("next", "previous")
SPDX = "SPDX-License-Identifier:"
_SPDX_LINE = re.compile(rf"{SPDX}[ \t]*([A-Za-z0-9.+() -]{{1,120}})")
MAX_LICENSE = 120
NAMES_LOOKED_FOR, PLACES_READ = 200, 1000
_TELLING_NAME = re.compile(r"(?=.{5})\w*([a-z0-9][A-Z_]|_)\w*")
"""A name that prose has only where it means the code: my_name, myName, MyName; no single common word."""


@dataclass(frozen=True, slots=True)
class CorpusPassage:
    """A chunk as the stages see it.

    Attributes:
        char_start: its place in the document's text.
        name: qualified name of the code it is, "" for prose.
        license: of its document, "" where nobody stated one; url: where the document is from; title: of it, "" where none was read.
    """

    chunk_id: int
    document_id: int
    document: str
    collection: str
    text: str
    char_start: int
    page: int | None
    headings: tuple[str, ...]
    kind: str
    name: str
    license: str = ""
    url: str = ""
    title: str = ""

    def source(self, start: int = 0, end: int | None = None) -> RecordSource:
        """Return characters of the passage as a source; the whole of it without numbers."""
        end = len(self.text) if end is None else end
        return RecordSource(
            document=self.document,
            quote=self.text[start:end],
            collection=self.collection,
            document_id=self.document_id,
            chunk_id=self.chunk_id,
            start=self.char_start + start,
            end=self.char_start + end,
            page=self.page,
            license=self.license,
            url=self.url,
        )


def documents_open(actor: Actor, collections: Sequence[int]) -> QuerySet[Document]:
    """Return the documents that rows may be made from."""
    rows: QuerySet[Document] = Document.objects.visible_to(actor).filter(
        collection_id__in=collections, **_OPEN
    )
    return rows


def chunks_open(actor: Actor, collections: Sequence[int]) -> QuerySet[Chunk]:
    """Return the chunks that rows may be made from."""
    rows: QuerySet[Chunk] = Chunk.objects.visible_to(actor).filter(
        collection_id__in=collections,
        is_disabled=False,
        **{f"document__{name}": value for name, value in _OPEN.items()},
    )
    return rows


def fingerprint_of(actor: Actor, collections: Sequence[int]) -> dict[str, Any]:
    """Return what the corpus is at this moment: a hash over path, version and content of each document."""
    digest, count = hashlib.sha256(), 0
    rows = documents_open(actor, collections).order_by("collection_id", "path", "version")
    for facts in rows.values_list("collection_id", "path", "version", "sha256").iterator():
        digest.update(repr(facts).encode())
        count += 1
    return {"sha256": digest.hexdigest(), "documents": count}


def passages_read(actor: Actor, ids: Iterable[int], names: Mapping[int, str]) -> list[CorpusPassage]:
    """Return passages in the order of their ids; those that are gone by now, or closed, are missing.

    Args:
        names: of the collections, by id.
    """
    wanted = list(ids)
    rows = chunks_open(actor, list(names)).select_related("document").in_bulk(wanted)
    licenses = _licenses(actor, [row.document for row in rows.values()])
    return [
        CorpusPassage(
            chunk_id=pk,
            document_id=row.document_id,
            document=row.document.name,
            collection=names[row.collection_id],
            text=row.text,
            char_start=row.char_start,
            page=row.page_start,
            headings=tuple(map(str, row.headings)),
            kind=row.kind,
            name=row.qualified_name,
            license=licenses[row.document_id],
            url=row.document.source_url,
            title=row.document.title,
        )
        for pk in wanted
        if (row := rows.get(pk)) is not None
    ]


def _licenses(actor: Actor, documents: Iterable[Document]) -> dict[int, str]:
    """Return the licence of each document: as its owner has stated it, else as an SPDX line at its head says.

    The owner states it as the attribute ``license`` of the document, which uploads, imports and the document's page take.
    SPDX lines: spdx.github.io/spdx-spec, annex "SPDX short identifiers in source files".
    """
    found = {
        row.pk: str(row.attributes.get("license") or row.attributes.get("licence") or "").strip()[
            :MAX_LICENSE
        ]
        for row in documents
    }
    heads = Chunk.objects.visible_to(actor).filter(
        document_id__in=[pk for pk, name in found.items() if not name], index=0, text__contains=SPDX
    )
    for pk, text in heads.values_list("document_id", "text"):
        match = _SPDX_LINE.search(text)
        found[pk] = match[1].strip() if match else ""
    return found


def pools_read(actor: Actor, settings: Settings, slots: Sequence[Slot]) -> dict[str, list[tuple[int, ...]]]:
    """Return, for each type, groups of passages to ask about, in the order in which they are used.

    The order depends on the seed and the ids alone, and goes through the documents in turn, so that a long document
    does not crowd out the others.
    """
    need = {name: settings.rounds * n for name, n in _counted(slots).items()}
    most = max(need.values(), default=0)
    prose = chunks_ordered(actor, settings, PROSE_KINDS, most)
    pools: dict[str, list[tuple[int, ...]]] = {}
    for name in need:
        if name == QuestionType.CODE:
            code = chunks_ordered(actor, settings, CODE_KINDS, most)
            pools[name] = _documented(actor, settings, code)
        elif name == QuestionType.MULTI_HOP:
            linked = _linked(actor, chunks_ordered(actor, settings, PROSE_KINDS, 4 * most))
            among = chunks_ordered(actor, settings, PROSE_KINDS, COMPARED)
            pools[name] = _once_each([*linked, *_alike(actor, among)])
        elif name == QuestionType.MULTI_TURN:
            # What belongs together is asked about in one conversation; a script goes on from any passage.
            linked = _linked(actor, chunks_ordered(actor, settings, PROSE_KINDS, 4 * most))
            pools[name] = [*_once_each(linked), *((pk,) for pk in prose)]
        elif name == QuestionType.COMPARISON:
            pools[name] = _alike(actor, chunks_ordered(actor, settings, PROSE_KINDS, COMPARED))
        elif name == QuestionType.CONTRADICTORY:
            pools[name] = _alike(
                actor, chunks_ordered(actor, settings, PROSE_KINDS, COMPARED), is_wanted=disagreement
            )
        else:
            # Each type begins elsewhere, so that one passage is not asked about in every way.
            shift = sorted(need).index(name) * len(prose) // max(1, len(need))
            pools[name] = [(pk,) for pk in prose[shift:] + prose[:shift]]
    return pools


def _counted(slots: Sequence[Slot]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for slot in slots:
        counts[slot.type] = counts.get(slot.type, 0) + 1
    return counts


def chunks_ordered(actor: Actor, settings: Settings, kinds: Sequence[ChunkKind], most: int) -> list[int]:
    """Return chunks in an order that depends on the seed and the ids alone, going through the documents in turn."""
    mixed = MD5(Concat(Cast("pk", TextField()), Value(f"|{settings.seed}")))
    rows = (
        chunks_open(actor, settings.collections)
        .filter(kind__in=[kind.value for kind in kinds])
        .annotate(size=Length("text"))
        .filter(size__gte=LEAST_CHARS)
        .annotate(mixed=mixed)
        .annotate(turn=Window(RowNumber(), partition_by=F("document_id"), order_by=F("mixed").asc()))
        .order_by("turn", "mixed")
        .values_list("pk", flat=True)
    )
    return list(rows[:most])


def _linked(actor: Actor, first: Sequence[int]) -> list[tuple[int, ...]]:
    """Return pairs of a passage and the one it is linked to most strongly, by what they say before by their order."""
    best: dict[int, tuple[tuple[bool, float, int], int]] = {}
    links = (
        ChunkLink.objects.visible_to(actor)
        .filter(chunk_id__in=first, target__is_disabled=False)
        .annotate(size=Length("target__text"))
        .filter(size__gte=LEAST_CHARS)
    )
    for chunk, target, relation, weight in links.values_list("chunk_id", "target_id", "relation", "weight"):
        rank = (relation not in _BY_ORDER, weight, -target)
        if chunk not in best or rank > best[chunk][0]:
            best[chunk] = (rank, target)
    pairs: dict[frozenset[int], tuple[int, ...]] = {}
    for pk in first:
        if pk in best:
            pairs.setdefault(frozenset((pk, best[pk][1])), (pk, best[pk][1]))
    return list(pairs.values())


def _documented(actor: Actor, settings: Settings, code: Sequence[int]) -> list[tuple[int, ...]]:
    """Return each piece of code, with the passage of prose that names it where there is one."""
    names = {
        pk: name.rpartition(".")[2]
        for pk, name in Chunk.objects.visible_to(actor)
        .filter(pk__in=code)
        .values_list("pk", "qualified_name")
    }
    telling = sorted({n for n in names.values() if _TELLING_NAME.fullmatch(n)})[:NAMES_LOOKED_FOR]
    if not telling:
        return [(pk,) for pk in code]
    prose = chunks_open(actor, settings.collections).filter(
        kind__in=[kind.value for kind in PROSE_KINDS], text__regex=rf"\m({'|'.join(telling)})\M"
    )
    partner: dict[str, int] = {}
    for pk, text in prose.order_by("pk").values_list("pk", "text")[:PLACES_READ]:
        for name in set(re.findall(r"\w+", text)).intersection(telling):
            partner.setdefault(name, pk)
    return [(pk, partner[name]) if (name := names.get(pk, "")) in partner else (pk,) for pk in code]


def _once_each(groups: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return groups without those of the same passages in another order."""
    return list({frozenset(group): group for group in reversed(list(groups))}.values())[::-1]


def _alike(
    actor: Actor, among: Sequence[int], is_wanted: Callable[[str, str], object] | None = None
) -> list[tuple[int, ...]]:
    """Return pairs of passages of different documents that share most words; of one document where it is the only one.

    Args:
        is_wanted: tells by their texts whether a pair is of use; asked as long as there are wanted ones to find.
    """
    rows = {
        pk: (document, set(content_terms(text)), text)
        for pk, document, text in Chunk.objects.visible_to(actor)
        .filter(pk__in=among)
        .values_list("pk", "document_id", "text")
    }
    has_many = len({document for document, _, _ in rows.values()}) > 1
    found: list[tuple[float, int, int]] = []
    for place, a in enumerate(among):
        for b in among[place + 1 :]:
            (first, mine, _), (second, theirs, _) = rows[a], rows[b]
            if has_many and first == second:
                continue
            shared = len(mine & theirs)
            if shared >= 3:
                found.append((shared / len(mine | theirs), a, b))
    found.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    used: set[int] = set()
    pairs: list[tuple[int, ...]] = []
    for _, a, b in found:
        is_free = a not in used and b not in used
        if is_free and (is_wanted is None or is_wanted(rows[a][2], rows[b][2])):
            pairs.append((a, b))
            used |= {a, b}
    return pairs
