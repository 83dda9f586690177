"""Read the chunks of a collection: filtered, by place, by source file, by header, and one after another with a cursor.

Everything starts from what the actor may see and costs the same number of queries however many chunks there are. The
order of reading is documents by their id, and each from its first chunk to its last. Links are in ``chunk_links``,
figures in ``chunk_statistics``.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast

from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from apps.collections.models import Chunk, ChunkKind, ChunkLink, Collection, DocumentStatus
from basics.errors import Invalid, Missing
from tenancy.actors import Actor

HeaderMatch = Literal["exact", "contains"]
MAX_TEXT = 500
_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ChunkFilter:
    """Which chunks are read; every value that is set must hold.

    Attributes:
        document_id: of this document alone, and then of an earlier version too; None for all that are live.
        path: of the source file at this path.
        path_prefix: of the files below this folder.
        kinds: of ``ChunkKind``.
        header: under a heading of this title, case aside.
        header_match: ``exact`` for the whole title, ``contains`` for a part of it.
        text: with these characters in the text, case aside.
        page: that touch this page.
        qualified_name: code whose full name begins so.
        relation: with a link of this relation; ``any`` for any link.
        has_points: with key points, or without.
        points_by: whose key points a rule or a model has made.
        is_disabled, is_edited: switched off, changed by hand; None for both.
    """

    document_id: int | None = None
    path: str = ""
    path_prefix: str = ""
    kinds: tuple[str, ...] = ()
    header: str = ""
    header_match: HeaderMatch = "exact"
    text: str = ""
    page: int | None = None
    qualified_name: str = ""
    relation: str = ""
    has_points: bool | None = None
    points_by: str = ""
    is_disabled: bool | None = None
    is_edited: bool | None = None


@dataclass(frozen=True, slots=True)
class ReaderCursor:
    """Where a reader stands: a plain value that outlives the process, and means the same after chunks came or went.

    Attributes:
        where: which chunks are read.
        document_id, index: of the chunk that is current; None before the first step.
    """

    collection_id: int
    where: ChunkFilter = ChunkFilter()
    document_id: int | None = None
    index: int | None = None

    def to_text(self) -> str:
        """Return it as text for an address or a file."""
        kept = {k: v for k, v in asdict(self.where).items() if v not in (None, "", ())}
        said = [self.collection_id, self.document_id, self.index, kept]
        raw = json.dumps(said, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def from_text(cls, text: str) -> ReaderCursor:
        """Return the cursor that ``to_text`` wrote; it grants nothing, each step asks for the rights again.

        Raises:
            Invalid: ``cursor_invalid``.
        """
        try:
            raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
            collection_id, document_id, index, said = json.loads(raw)
            known = {field.name for field in fields(ChunkFilter)}
            if set(said) - known or not all(
                _is_number(n) for n in (collection_id, document_id, index) if n is not None
            ):
                raise ValueError
            where = ChunkFilter(**{**said, "kinds": tuple(said.get("kinds", ()))})
        except (ValueError, TypeError, RecursionError) as error:
            raise Invalid(
                "cursor_invalid", "This isn't a valid reader cursor. Start again from the beginning."
            ) from error
        return cls(collection_id, where, document_id, index)


@dataclass(frozen=True, slots=True)
class ReaderStep:
    """Where a step has led.

    Attributes:
        chunk: with its document; None when there is none in that direction, and the cursor has not moved.
    """

    cursor: ReaderCursor
    chunk: Chunk | None


def chunk_rows(*, actor: Actor, collection: Collection, where: ChunkFilter | None = None) -> QuerySet[Chunk]:
    """Return the chunks of a collection's ready documents that a filter leaves, in reading order, with documents.

    Raises:
        Invalid: ``filter_invalid`` for a value that cannot be one.
    """
    actor.require("collection.read")
    where = where or ChunkFilter()
    _check(where)
    rows = (
        Chunk.objects.visible_to(actor)
        .filter(collection=collection, document__status=DocumentStatus.READY)
        .select_related("document")
        .order_by("document_id", "index")
    )
    if where.document_id is None:
        rows = rows.filter(document__live_to__isnull=True)
    else:
        rows = rows.filter(document_id=where.document_id)
    return cast("QuerySet[Chunk]", _filtered(rows, where))


def _filtered(rows: Any, where: ChunkFilter) -> Any:
    same: dict[str, Any] = {
        "document__path": where.path or None,
        "document__path__startswith": where.path_prefix or None,
        "kind__in": where.kinds or None,
        "text__icontains": where.text or None,
        "page_start__lte": where.page,
        "page_end__gte": where.page,
        "qualified_name__startswith": where.qualified_name or None,
        "points_by": where.points_by or None,
        "is_disabled": where.is_disabled,
        "is_edited": where.is_edited,
    }
    rows = rows.filter(**{name: value for name, value in same.items() if value is not None})
    if where.header:
        rows = rows.filter(_under(where.header, where.header_match))
    if where.has_points is not None:
        rows = rows.filter(~Q(key_points=[]) if where.has_points else Q(key_points=[]))
    if where.relation:
        links = ChunkLink.objects.filter(chunk_id=OuterRef("pk"), document_id=OuterRef("document_id"))
        if where.relation != "any":
            links = links.filter(relation=where.relation)
        rows = rows.filter(Exists(links))
    return rows


def _under(header: str, match: HeaderMatch) -> RawSQL:
    """Hold for chunks under a heading: on their path, or one of the sections that were gathered in them."""
    said = header.lower()
    if match == "contains":
        said = "%" + said.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    return RawSQL(  # noqa: S611 - the value is a parameter
        "EXISTS (SELECT FROM jsonb_array_elements_text(collections_chunk.headings || "
        "coalesce(collections_chunk.metadata -> 'sections', '[]'::jsonb)) AS heading (title) "
        f"WHERE lower(heading.title) {'LIKE' if match == 'contains' else '='} %s)",
        [said],
        output_field=BooleanField(),
    )


def _check(where: ChunkFilter) -> None:
    problems: dict[str, list[str]] = {}
    if unknown := set(where.kinds) - set(ChunkKind.values):
        known = ", ".join(ChunkKind.values)
        problems["kind"] = [
            f"There is no kind {', '.join(map(str, sorted(unknown, key=str)))}. Known: {known}."
        ]
    for name in ("path", "path_prefix", "header", "text", "qualified_name", "relation", "points_by"):
        value = getattr(where, name)
        limit = 1000 if name.startswith("path") else MAX_TEXT
        if not isinstance(value, str) or "\x00" in value or len(value) > limit:
            problems[name] = [f"Enter text of at most {limit} characters."]
    for name in ("document_id", "page"):
        value = getattr(where, name)
        if value is not None and not _is_number(value, 2**63 - 1 if name == "document_id" else _MAX_INT):
            problems[name] = ["Enter a whole number."]
    if where.header_match not in ("exact", "contains"):
        problems["header_match"] = ["Choose exact or contains."]
    if problems:
        raise Invalid("filter_invalid", "Some filters are invalid; see details.", data={"fields": problems})


def _is_number(value: Any, most: int = 2**63 - 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def reader_current(*, actor: Actor, cursor: ReaderCursor) -> ReaderStep:
    """Return the chunk at the cursor; before the first step, and where it has gone, the next one after."""
    rows = _rows(actor, cursor)
    if cursor.document_id is None:
        return _step(cursor, rows.first())
    at = Q(document_id__gt=cursor.document_id) | Q(document_id=cursor.document_id, index__gte=cursor.index)
    return _step(cursor, rows.filter(at).first())


def reader_next(*, actor: Actor, cursor: ReaderCursor) -> ReaderStep:
    """Go on to the next chunk; the first step leads to the first chunk."""
    rows = _rows(actor, cursor)
    if cursor.document_id is not None:
        after = Q(document_id=cursor.document_id, index__gt=cursor.index)
        rows = rows.filter(Q(document_id__gt=cursor.document_id) | after)
    return _step(cursor, rows.first())


def reader_previous(*, actor: Actor, cursor: ReaderCursor) -> ReaderStep:
    """Go back to the chunk before; there is none before the first step."""
    if cursor.document_id is None:
        return ReaderStep(cursor, None)
    before = Q(document_id=cursor.document_id, index__lt=cursor.index)
    rows = _rows(actor, cursor).filter(Q(document_id__lt=cursor.document_id) | before)
    return _step(cursor, rows.order_by("-document_id", "-index").first())


def reader_jump(*, actor: Actor, cursor: ReaderCursor, place: int) -> ReaderStep:
    """Go to a place among all chunks that are read, from 0; a negative one counts from the end.

    Raises:
        Missing: there is no such place; the cursor that was given still stands.
    """
    rows = _rows(actor, cursor)
    if place < 0:
        rows, place = rows.order_by("-document_id", "-index"), -place - 1
    found = rows[min(place, _MAX_INT) :].first() if place <= _MAX_INT else None
    if found is None:
        raise Missing("chunk")
    return _step(cursor, found)


def reader_reset(cursor: ReaderCursor) -> ReaderCursor:
    """Return the cursor before its first step."""
    return replace(cursor, document_id=None, index=None)


def reader_place(*, actor: Actor, cursor: ReaderCursor) -> tuple[int, int]:
    """Count, in two queries, how many chunks lie before the cursor and how many there are."""
    rows = _rows(actor, cursor)
    total = rows.count()
    if cursor.document_id is None:
        return 0, total
    before = Q(document_id=cursor.document_id, index__lt=cursor.index)
    return rows.filter(Q(document_id__lt=cursor.document_id) | before).count(), total


def _rows(actor: Actor, cursor: ReaderCursor) -> QuerySet[Chunk]:
    return chunk_rows(
        actor=actor,
        collection=Collection(pk=cursor.collection_id, tenant_id=actor.tenant_id),
        where=cursor.where,
    )


def _step(cursor: ReaderCursor, chunk: Chunk | None) -> ReaderStep:
    if chunk is None:
        return ReaderStep(cursor, None)
    return ReaderStep(replace(cursor, document_id=chunk.document_id, index=chunk.index), chunk)
