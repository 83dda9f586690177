from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.collections.collection.reconcile import ingestion_check
from apps.collections.documents.operator import collection_named
from tenancy.actors import system_actor
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope


class Command(BaseCommand):
    help = "Compare documents, chunks, vectors, statistics and files with each other; exit code 1 when something is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--collection", metavar="NAME", help="name or id; without it, all, and the files on disk"
        )
        parser.add_argument("--repair", action="store_true", help="repair what can be repaired")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            collection = None
            if options["collection"]:
                collection = collection_named(tenant, options["collection"])
                if collection is None:
                    raise CommandError(f"There is no collection “{options['collection']}” in {tenant.slug}.")
            check = ingestion_check(
                tenant=tenant, actor=system_actor(tenant.pk), collection=collection, repair=options["repair"]
            )
        if options["json"]:
            self.stdout.write(json.dumps(asdict(check), ensure_ascii=False))
        else:
            for finding in check.findings:
                state = "repaired" if finding.is_repaired else "OPEN"
                self.stdout.write(
                    f"{state:8} {finding.code:18} {finding.subject}: {finding.detail} {finding.advice}".rstrip()
                )
            self.stdout.write(
                f"{check.documents} documents, {check.chunks} searchable chunks: {len(check.findings)} findings, "
                f"{len(check.open)} open."
            )
            if check.open and not options["repair"]:
                self.stdout.write("Run it again with --repair to repair what can be repaired.")
        if check.open:
            raise SystemExit(1)
