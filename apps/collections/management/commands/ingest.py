from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from apps.collections.collection.services import collection_create
from apps.collections.documents.operator import (
    collection_named,
    import_documents,
    import_finish,
    ingestion_finish,
)
from apps.collections.documents.services import document_upload
from apps.collections.imports.services import ImportOptions, import_start
from apps.collections.ingestion.media_types import SUPPORTED_SUFFIXES
from apps.collections.ingestion.sources.archives import is_archive
from apps.collections.models import (
    Collection,
    Document,
    DocumentSource,
    DocumentStatus,
    Import,
    ImportStatus,
    Stage,
)
from basics.errors import DomainError
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope

_BLOCK = 1024 * 1024
_STAGES = list(Stage.values)
_BAR = "{percentage:3.0f}% |{bar}| {elapsed}{postfix}"


@dataclass(frozen=True, slots=True)
class _Source:
    """What one import reads: an archive from this machine, or a place on the server or in the web."""

    kind: DocumentSource
    label: str
    options: ImportOptions
    archive: Path | None = None


class Command(BaseCommand):
    help = (
        "Put files, archives, web pages, folders, git repositories and Chroma folders into a collection and wait until "
        "each document is ready or has failed. Exit code 0: all ready; 1: something failed or was refused. Works with "
        "the running worker, or does the work itself when none is alive. Paths for --git, --chroma and "
        "--folder must be inside GROUNDWORK_IMPORT_PATHS."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "paths",
            nargs="*",
            type=Path,
            metavar="PATH",
            help="files, archives, or folders of files, whose bytes are uploaded",
        )
        for option, meaning in (
            ("--url", "a web page to fetch"),
            ("--git", "a repository on the server"),
            ("--chroma", "a Chroma folder on the server"),
            ("--folder", "a folder on the server, with the paths below it"),
        ):
            metavar = "URL" if option == "--url" else "PATH"
            parser.add_argument(
                option, action="append", default=[], metavar=metavar, help=f"{meaning}; may be repeated"
            )
        parser.add_argument("--ref", default="", help="branch, tag or commit for --git; default: HEAD")
        parser.add_argument("--chroma-collection", default="", metavar="NAME", help="when there are several")
        parser.add_argument(
            "--vectors-model",
            default="",
            metavar="MODEL",
            help="take over Chroma's vectors as this model's; default: embed again",
        )
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--collection", required=True, metavar="NAME", help="name or id")
        parser.add_argument("--create", action="store_true", help="create the collection if it doesn't exist")
        parser.add_argument("--timeout", type=float, default=3600.0, help="seconds to wait in total")
        parser.add_argument("--json", action="store_true", help="print one JSON object at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            actor = system_actor(tenant.pk)
            skipped: dict[str, str] = {}
            files = list(_files(options["paths"], skipped))
            sources = list(_sources(files, options))
            files = [path for path in files if not is_archive(path.name)]
            if not files and not sources:
                left = "".join(f"\nskipped {path}: {why}" for path, why in skipped.items())
                raise CommandError(f"No file of a supported format was found there.{left}")
            collection = self._collection(tenant, actor, options)
            # On a terminal alone: in a log, each step would be a line.
            with tqdm(total=0, file=sys.stderr, disable=None, leave=False, bar_format=_BAR) as bar:
                work = _Work(tenant, actor, collection, bar, options["timeout"])
                work.skipped = skipped
                work.upload(files)
                work.bring(sources)
                ended = work.finish()
        self._report(work, ended, options["json"])

    def _collection(self, tenant: Tenant, actor: Actor, options: dict[str, Any]) -> Collection:
        name = options["collection"]
        collection = collection_named(tenant, name)
        if collection is not None:
            return collection
        if not options["create"]:
            raise CommandError(f"There is no collection “{name}”; use --create to create it.")
        try:
            return collection_create(tenant=tenant, actor=actor, name=name)
        except DomainError as error:
            raise CommandError(error.message) from error

    def _report(self, work: _Work, ended: list[Document], as_json: bool) -> None:
        failed = [d for d in ended if d.status != DocumentStatus.READY]
        if as_json:
            self.stdout.write(json.dumps(_found(work, ended)))
        else:
            for line in _lines(work, ended):
                self.stdout.write(line)
        if failed or work.refused or any(_has_failed(row) for row in work.imports):
            raise SystemExit(1)


class _Work:
    """One call of the command: what was taken in, what was refused, and how far it is."""

    def __init__(
        self, tenant: Tenant, actor: Actor, collection: Collection, bar: Any, timeout_s: float
    ) -> None:
        self.tenant, self.actor, self.collection = tenant, actor, collection
        self.refused: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.imports: list[Import] = []
        self._bar = bar
        self._done: dict[int, float] = {}
        self._deadline = time.monotonic() + timeout_s

    def upload(self, files: list[Path]) -> None:
        """Upload each file as a document."""
        for path in files:
            try:
                uploaded = document_upload(
                    tenant=self.tenant,
                    actor=self.actor,
                    collection=self.collection,
                    name=path.name,
                    chunks=_blocks(path),
                )
            except DomainError as error:
                self.refused[str(path)] = error.message
                continue
            state = "queued" if uploaded.created else "already there"
            self._watch(uploaded.document, state)

    def bring(self, sources: list[_Source]) -> None:
        """Import each source, and wait for its entries; their documents are left to ``finish``."""
        started: list[Import] = []
        for source in sources:
            try:
                row = import_start(
                    tenant=self.tenant,
                    actor=self.actor,
                    collection=self.collection,
                    source=source.kind,
                    options=source.options,
                    name=source.archive.name if source.archive else "",
                    chunks=_blocks(source.archive) if source.archive else None,
                )
            except DomainError as error:
                self.refused[source.label] = error.message
                continue
            started.append(row)
        for row in started:
            self._tell(row.name, "importing")
            ended = import_finish(self.tenant, row, timeout_s=self._left_s())
            self.imports.append(ended)
            self._tell(row.name, str(ended.get_status_display()).lower())
            for document in import_documents(ended):
                self._watch(document, "queued")

    def finish(self) -> list[Document]:
        """Wait until every document has ended; returns them as they ended."""
        return ingestion_finish(self.tenant, list(self._done), on_change=self._show, timeout_s=self._left_s())

    def _left_s(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _watch(self, document: Document, state: str) -> None:
        self._done.setdefault(document.pk, 0.0)
        self._tell(document.name, state)

    def _show(self, document: Document) -> None:
        done: float = len(_STAGES)
        state = str(document.get_status_display()).lower()
        if document.status == DocumentStatus.PROCESSING:
            state = str(document.get_stage_display()).lower()
            done = _STAGES.index(document.stage) + document.progress_percent / 100
        elif document.status == DocumentStatus.QUEUED:
            done = 0
        self._done[document.pk] = done
        self._tell(document.name, state)

    def _tell(self, name: str, state: str) -> None:
        """Draw how much of all documents is done, and what happened to which of them last."""
        self._bar.total = len(self._done) * len(_STAGES)
        self._bar.n = sum(self._done.values())
        self._bar.set_postfix_str(f"{name}: {state}")


def _has_failed(row: Import) -> bool:
    """Tell whether an import failed or an entry of it did; what the rules leave out is no failure."""
    return row.status != ImportStatus.COMPLETED or bool(row.entries.get("problems"))


def _found(work: _Work, ended: list[Document]) -> dict[str, Any]:
    return {
        "collection": {"id": work.collection.pk, "name": work.collection.name},
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
                "warnings": d.warnings,
                "seconds": d.timings,
            }
            for d in ended
        ],
        "imports": [
            {
                "id": row.pk,
                "source": row.source,
                "name": row.name,
                "status": row.status,
                "entries": row.entries,
                "problems": row.problems,
                "error_code": row.error_code,
                "error_message": row.error_message,
            }
            for row in work.imports
        ],
        "refused": [{"path": path, "message": text} for path, text in work.refused.items()],
        "skipped": [{"path": path, "message": text} for path, text in work.skipped.items()],
    }


def _lines(work: _Work, ended: list[Document]) -> Iterator[str]:
    for document in ended:
        if document.status == DocumentStatus.READY:
            yield f"ready   {document.name}: {document.page_count} pages, {document.chunk_count} chunks"
        else:
            yield f"{document.status:7} {document.name}: {document.error_message} ({document.error_code})"
        for warning in document.warnings:
            yield f"        warning: {warning}"
    for row in work.imports:
        counts = ", ".join(
            f"{count} {name}" for name, count in row.entries.items() if isinstance(count, int) and count
        )
        yield f"import  {row.name}: {row.status}; {counts or 'no entries'}"
        if row.error_message:
            yield f"        {row.error_message} ({row.error_code})"
        for problem in row.problems:
            word = "left out" if problem["is_skip"] else "problem"
            yield f"        {word}: {problem['path']}: {problem['message']} ({problem['reason']})"
    for path, text in work.refused.items():
        yield f"refused {path}: {text}"
    for path, text in work.skipped.items():
        yield f"skipped {path}: {text}"


def _sources(files: list[Path], options: dict[str, Any]) -> Iterator[_Source]:
    """Yield an import for each archive and each path on the server, and one for all web pages."""
    for path in files:
        if is_archive(path.name):
            yield _Source(DocumentSource.ARCHIVE, str(path), ImportOptions(), path)
    if urls := tuple(options["url"]):
        yield _Source(DocumentSource.URL, ", ".join(urls), ImportOptions(urls=urls))
    for text in options["folder"]:
        yield _Source(DocumentSource.FOLDER, text, ImportOptions(path=_absolute(text)))
    for text in options["git"]:
        kept = ImportOptions(path=_absolute(text), ref=options["ref"])
        yield _Source(DocumentSource.GIT, text, kept)
    for text in options["chroma"]:
        kept = ImportOptions(
            path=_absolute(text),
            chroma_collection=options["chroma_collection"],
            vectors_model=options["vectors_model"],
        )
        yield _Source(DocumentSource.CHROMA, text, kept)


def _absolute(text: str) -> str:
    return str(Path(text).absolute())


def _files(paths: list[Path], skipped: dict[str, str]) -> Iterator[Path]:
    """Yield the files named, and those of a supported format in the folders named.

    Args:
        skipped: gets every other entry of those folders, with the reason.
    """
    for path in paths:
        if path.is_dir():
            for inside in sorted(path.rglob("*")):
                why = _why_skipped(inside)
                if why:
                    skipped[str(inside)] = why
                elif inside.is_file():
                    yield inside
        elif path.is_file():
            yield path
        else:
            raise CommandError(f"There is no file {path}.")


def _why_skipped(path: Path) -> str:
    """Return why an entry of a folder is not uploaded, "" for one that is and for a folder."""
    if path.is_symlink() and not path.exists():
        return "a link that leads nowhere"
    if path.is_dir():
        return ""
    if not path.is_file():
        return "neither a file nor a folder"
    if path.suffix.lower() in SUPPORTED_SUFFIXES or is_archive(path.name):
        return ""
    if not path.suffix:
        return "its name has no extension for its format; pass the file itself to have it read"
    return f"files ending in {path.suffix} are not read from folders; pass the file itself to try it"


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            yield block
