"""From an import's row to the entries of its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from apps.collections import files
from apps.collections.import_scratch import import_scratch
from apps.collections.import_settings import import_limits, page_limits, paths_allowed
from apps.collections.ingestion.sources.archives import archive_entries
from apps.collections.ingestion.sources.base import (
    Entry,
    Problem,
    Rules,
    SourceFailure,
    SourceLimits,
)
from apps.collections.ingestion.sources.folders import folder_entries, folder_open
from apps.collections.ingestion.sources.isolated import isolated_entries, unpacked_folder
from apps.collections.ingestion.sources.web import Known, Unchanged, web_entries
from apps.collections.models import Document, DocumentSource, DocumentStatus, Import
from apps.collections.pipeline import reader_limits
from basics.net_guard import system_resolver
from tenancy.outgoing import outgoing_policy

resolver = system_resolver


def source_items(
    row: Import,
    stack: ExitStack,
    *,
    on_tick: Callable[[], None],
    on_fact: Callable[[Mapping[str, Any]], None],
) -> Iterator[Entry | Problem | Unchanged]:
    """Yield what an import's source holds.

    Args:
        row: with its tenant and its collection's space.
        stack: closes files and temporary folders when the import ends.
        on_tick: called again and again while nothing comes; what it raises stops the source.
        on_fact: told what a source says of itself.

    Raises:
        DomainError: it cannot be read.
    """
    options = row.options
    limits = replace(import_limits(), scratch=str(import_scratch(row, stack)))
    rules = Rules(
        include=tuple(options.get("include", ())),
        exclude=tuple(options.get("exclude", ())),
        with_hidden=bool(options.get("with_hidden")),
    )
    if row.source == DocumentSource.URL:
        yield from web_entries(
            options["urls"],
            limits=page_limits(),
            policy=outgoing_policy(row.tenant_id),
            known=lambda url: _known(row, url),
            resolver=resolver,
        )
    elif row.source == DocumentSource.ARCHIVE:
        yield from archive_entries(files.file_path(row.file), row.name, rules=rules, limits=limits)
    elif row.source == DocumentSource.FOLDER:
        folder = _server_folder(row, stack)
        yield from folder_entries(folder, rules=rules, limits=limits)
    else:
        path = _isolated_path(row, stack, limits)
        request = (
            _git_request(options) if row.source == DocumentSource.GIT else _chroma_request(row)
        )
        yield from isolated_entries(
            row.source,
            path,
            request,
            limits=limits,
            child=reader_limits(),
            on_fact=on_fact,
            on_tick=on_tick,
        )


def _server_folder(row: Import, stack: ExitStack) -> int:
    descriptor = folder_open(row.options["path"], paths_allowed(row.tenant.slug))
    stack.callback(os.close, descriptor)
    return descriptor


def _isolated_path(row: Import, stack: ExitStack, limits: SourceLimits) -> Path:
    if row.options.get("path"):
        judged = _server_folder(row, stack)
        try:
            return Path(os.readlink(f"/proc/self/fd/{judged}"))  # where the judged folder is now
        except OSError:
            return Path(row.options["path"])  # a system without /proc
    return unpacked_folder(files.file_path(row.file), Path(limits.scratch), row.source, limits)


def _git_request(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options.get(name) or default for name, default in (("ref", ""), ("include", []), ("exclude", []), ("with_hidden", False))}  # fmt: skip


def _chroma_request(row: Import) -> dict[str, Any]:
    model = row.options.get("vectors_model", "")
    space = row.collection.space
    if model and model != space.model:
        raise SourceFailure(
            "vectors_of_another_model",
            f"The vectors are said to be of {model}; this collection's are of {space.model}, and the two cannot be "
            "compared. Leave the option “vectors_model” away: then the chunks are embedded anew.",
        )
    return {
        "collection": row.options.get("chroma_collection", ""),
        "source_key": row.options.get("source_key", ""),
        "model": model,
    }


def _known(row: Import, url: str) -> Known | None:
    document = (
        Document.objects.filter(
            collection_id=row.collection_id,
            source=DocumentSource.URL,
            source_url=url,
            status=DocumentStatus.READY,
        )
        .current()
        .order_by("-version")
        .first()
    )
    if document is None:
        return None
    web = document.metadata.get("web", {})
    return Known(document.path, str(web.get("etag", "")), str(web.get("modified", "")))
