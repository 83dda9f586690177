from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.collections.chunks.links import chain_walk, chunk_links
from apps.collections.chunks.selectors import ChunkFilter, ReaderCursor, chunk_rows, reader_next
from apps.collections.chunks.statistics import chunk_statistics
from apps.collections.display.selectors import chunk_get
from apps.collections.documents.operator import collection_named
from apps.collections.models import Chunk, ChunkKind
from basics.errors import DomainError
from tenancy.actors import Actor, system_actor
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope

_SHOWN = 200


class Command(BaseCommand):
    help = "Read the chunks of a collection: list, walk with a cursor, follow links, or print figures."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "what", choices=("list", "walk", "links", "chain", "statistics"), nargs="?", default="list"
        )
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--collection", metavar="NAME", help="name or id")
        parser.add_argument(
            "--chunk", metavar="ID", help="the passage where links and chain begin, such as c123"
        )
        parser.add_argument("--cursor", help="where a walk continues, as the last one printed it")
        parser.add_argument("--limit", type=int, default=20, help="chunks or steps (default 20)")
        parser.add_argument("--path", default="", help="of this source file")
        parser.add_argument("--header", default="", help="under a heading with these words")
        parser.add_argument("--text", default="", help="containing this text")
        parser.add_argument("--kind", action="append", default=[], choices=ChunkKind.values)
        parser.add_argument("--relation", default="", help="links of this relation")
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            try:
                for told, line in self._told(system_actor(tenant.pk), tenant, options):
                    said = json.dumps(told, ensure_ascii=False) if options["json"] else line
                    self.stdout.write(said)
            except DomainError as error:
                raise CommandError(error.message) from error

    def _told(
        self, actor: Actor, tenant: Any, options: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], str]]:
        if options["what"] in ("links", "chain"):
            yield from self._linked(actor, options)
            return
        collection = collection_named(tenant, options["collection"] or "")
        if collection is None:
            raise CommandError("Name a collection of this workspace with --collection.")
        if options["what"] == "statistics":
            figures = asdict(chunk_statistics(actor=actor, collection=collection))
            yield figures, "\n".join(f"{name:12} {value}" for name, value in figures.items())
            return
        where = ChunkFilter(
            path=options["path"],
            header=options["header"],
            header_match="contains",
            text=options["text"],
            kinds=tuple(options["kind"]),
            relation=options["relation"],
        )
        if options["what"] == "list":
            rows = chunk_rows(actor=actor, collection=collection, where=where)
            for chunk in rows[: max(0, options["limit"])]:
                yield _fields(chunk), _line(chunk)
            return
        given = options["cursor"]
        cursor = ReaderCursor.from_text(given) if given else ReaderCursor(collection.pk, where)
        for _ in range(options["limit"]):
            step = reader_next(actor=actor, cursor=cursor)
            if step.chunk is None:
                break
            cursor = step.cursor
            yield _fields(step.chunk), _line(step.chunk)
        yield {"cursor": cursor.to_text()}, f"--cursor {cursor.to_text()}"

    def _linked(self, actor: Actor, options: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        digits = (options["chunk"] or "").removeprefix("c")
        if not digits.isdecimal():
            raise CommandError("Name the chunk with --chunk, such as c123.")
        chunk = chunk_get(actor=actor, pk=int(digits)).chunk
        if options["what"] == "links":
            found = chunk_links(actor=actor, chunk=chunk, relation=options["relation"])
            for link in found[: max(0, options["limit"])]:
                link.chunk.document = chunk.document
                told = {"relation": link.relation, "weight": link.weight, "made_by": link.made_by}
                line = f"{link.relation} {link.weight:.2f} by {link.made_by}: {_line(link.chunk)}"
                yield told | _fields(link.chunk), line
            return
        relations = (options["relation"] or "next",)
        steps = chain_walk(actor=actor, chunk=chunk, relations=relations, depth=options["limit"])
        for step in steps:
            yield {"depth": step.depth} | _fields(step.chunk), f"{step.depth:3} {_line(step.chunk)}"


def _fields(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.pk,
        "path": chunk.document.path,
        "index": chunk.index,
        "kind": chunk.kind,
        "page": chunk.page_start,
        "headings": chunk.headings,
        "key_points": chunk.key_points,
        "is_disabled": chunk.is_disabled,
        "is_edited": chunk.is_edited,
        "text": chunk.text,
    }


def _line(chunk: Chunk) -> str:
    text = " ".join(chunk.text.split())
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    page = f", page {chunk.page_start}" if chunk.page_start else ""
    heads = " > ".join(chunk.headings)
    return f"c{chunk.pk} {chunk.document.path} #{chunk.index}{page} [{chunk.kind}] {heads}\n    {text}"
