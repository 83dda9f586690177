from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.collections.documents.operator import collection_named
from apps.collections.search import SearchHit, search_run
from basics.errors import DomainError
from tenancy.actors import system_actor
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope

_SHOWN = 300


class Command(BaseCommand):
    help = "Search a collection and show the passages with the rank of each way of searching."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("query")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--collection",
            action="append",
            default=[],
            metavar="NAME",
            help="name or id; again for more; without it, all of the workspace",
        )
        parser.add_argument("-k", type=int, default=10, help="passages (default 10)")
        parser.add_argument(
            "--filters", type=json.loads, metavar="JSON", help='for example {"media_type": "application/pdf"}'
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            collections = []
            for name in options["collection"]:
                collection = collection_named(tenant, name)
                if collection is None:
                    raise CommandError(f"There is no collection “{name}” in {tenant.slug}.")
                collections.append(collection)
            try:
                result = search_run(
                    tenant=tenant,
                    actor=system_actor(tenant.pk),
                    collections=collections or None,
                    query=options["query"],
                    k=options["k"],
                    filters=options["filters"],
                )
            except DomainError as error:
                raise CommandError(error.message) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(result), ensure_ascii=False))
            return
        for number, hit in enumerate(result.hits, 1):
            self.stdout.write(self._line(number, hit))
        self.stdout.write(f"{len(result.hits)} passages in {result.elapsed_ms:.0f} ms. {result.note}".strip())

    def _line(self, number: int, hit: SearchHit) -> str:
        ranks = [
            f"{name} {rank}"
            for name, rank in (
                ("meaning", hit.vector_rank),
                ("words", hit.lexical_rank),
                ("exact", hit.exact_rank),
            )
            if rank is not None
        ]
        page = f", page {hit.page_start}" if hit.page_start else ""
        text = " ".join(hit.text.split())
        text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        return f"{number:2}. {hit.document_name}{page} [c{hit.chunk_id}] ({', '.join(ranks)})\n    {text}"
