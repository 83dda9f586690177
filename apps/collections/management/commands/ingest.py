from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from apps.collections.ingestion.detect import SUPPORTED_SUFFIXES
from apps.collections.models import Collection, Document, DocumentStatus, Stage
from apps.collections.operator import collection_named, ingestion_finish, tenant_named
from apps.collections.services import collection_create, document_upload
from basics.errors import DomainError
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

_BLOCK = 1024 * 1024
_STAGES = list(Stage.values)


class Command(BaseCommand):
    help = (
        "Put files into a collection and wait until each is ready or has failed. Exit code 0: all ready; 1: some "
        "failed. Works with the running worker, or does the work itself when none is alive."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files or folders")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--collection", required=True, metavar="NAME", help="name or id")
        parser.add_argument(
            "--create", action="store_true", help="make the collection if there is none"
        )
        parser.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait in all")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            actor = system_actor(tenant.pk)
            files = list(_files(options["paths"]))
            if not files:
                raise CommandError("No file of a supported format was found there.")
            collection = self._collection(tenant, actor, options)
            console = Console(stderr=True, quiet=options["json"] and not sys.stderr.isatty())
            with Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                console=console,
            ) as progress:
                ended, refused = self._ingest(tenant, actor, collection, files, progress, options)
        self._report(collection, ended, refused, options["json"])

    def _collection(self, tenant: Tenant, actor: Actor, options: dict[str, Any]) -> Collection:
        name = options["collection"]
        collection = collection_named(tenant, name)
        if collection is not None:
            return collection
        if not options["create"]:
            raise CommandError(f"There is no collection “{name}”; --create makes it.")
        try:
            return collection_create(tenant=tenant, actor=actor, name=name)
        except DomainError as error:
            raise CommandError(error.message) from error

    def _ingest(
        self,
        tenant: Tenant,
        actor: Actor,
        collection: Collection,
        files: list[Path],
        progress: Progress,
        options: dict[str, Any],
    ) -> tuple[list[Document], dict[str, str]]:
        bars: dict[int, TaskID] = {}
        refused: dict[str, str] = {}
        for path in files:
            try:
                uploaded = document_upload(
                    tenant=tenant,
                    actor=actor,
                    collection=collection,
                    name=path.name,
                    chunks=_blocks(path),
                )
            except DomainError as error:
                refused[str(path)] = error.message
                continue
            state = "queued" if uploaded.created else "there already"
            pk = uploaded.document.pk
            bars.setdefault(pk, progress.add_task(path.name, total=len(_STAGES), state=state))

        def show(document: Document) -> None:
            done: float = len(_STAGES)
            state = str(document.get_status_display()).lower()
            if document.status == DocumentStatus.PROCESSING:
                state = str(document.get_stage_display()).lower()
                done = _STAGES.index(document.stage) + document.progress_percent / 100
            elif document.status == DocumentStatus.QUEUED:
                done = 0
            progress.update(bars[document.pk], completed=done, state=state)

        timeout_s = options["timeout"]
        return ingestion_finish(tenant, list(bars), on_change=show, timeout_s=timeout_s), refused

    def _report(
        self,
        collection: Collection,
        ended: list[Document],
        refused: dict[str, str],
        as_json: bool,
    ) -> None:
        failed = [d for d in ended if d.status != DocumentStatus.READY]
        if as_json:
            found = {
                "collection": {"id": collection.pk, "name": collection.name},
                "documents": [
                    {
                        "id": d.pk,
                        "name": d.name,
                        "status": d.status,
                        "stage": d.stage,
                        "pages": d.page_count,
                        "chunks": d.chunk_count,
                        "error_code": d.error_code,
                        "error_message": d.error_message,
                        "seconds": d.timings,
                    }
                    for d in ended
                ],
                "refused": [{"path": path, "message": text} for path, text in refused.items()],
            }
            self.stdout.write(json.dumps(found))
        else:
            for document in ended:
                if document.status == DocumentStatus.READY:
                    self.stdout.write(
                        f"ready   {document.name}: {document.page_count} pages, {document.chunk_count} chunks"
                    )
                else:
                    self.stdout.write(
                        f"{document.status:7} {document.name}: {document.error_message} ({document.error_code})"
                    )
            for path, text in refused.items():
                self.stdout.write(f"refused {path}: {text}")
        if failed or refused:
            raise SystemExit(1)


def _files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files named, and those of a supported format in the folders named."""
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            yield from (p for p in inside if p.suffix.lower() in SUPPORTED_SUFFIXES)
        elif path.is_file():
            yield path
        else:
            raise CommandError(f"There is no file {path}.")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block
