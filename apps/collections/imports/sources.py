"""From an import's row to the entries of its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from apps.collections.imports.history import history_items, repository_ignored
from apps.collections.imports.limits import import_limits, page_limits, paths_allowed
from apps.collections.imports.scratch import import_scratch
from apps.collections.ingestion.sources.archives import archive_entries
from apps.collections.ingestion.sources.base import (
    Entry,
    Item,
    Problem,
    Reason,
    Rules,
    SourceFailure,
    SourceLimits,
    shown,
)
from apps.collections.ingestion.sources.folders import folder_entries, folder_open
from apps.collections.ingestion.sources.isolated import isolated_entries, packed_repositories, unpacked_folder
from apps.collections.ingestion.sources.web import Known, Unchanged, web_entries
from apps.collections.models import Document, DocumentSource, DocumentStatus, Import
from apps.collections.pipeline.run import reader_limits
from apps.collections.repositories.services import History
from basics.errors import DomainError, TryAgain
from basics.net_policy import system_resolver
from basics.texts import gettext as _
from blobs.leases import lease
from tenancy.outgoing import outgoing_policy

resolver = system_resolver


def source_items(
    row: Import,
    stack: ExitStack,
    *,
    on_tick: Callable[[], None],
    on_fact: Callable[[Mapping[str, Any]], None],
) -> Iterator[Item | Unchanged | History]:
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
        with_binary=bool(options.get("with_unsearchable")),
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
        archive = stack.enter_context(lease(row.file))
        listed = partial(archive_entries, archive, row.name, limits=limits)
        yield from _with_history(row, rules, listed, _packed_control(archive, limits), limits, on_tick)
    elif row.source == DocumentSource.FOLDER:
        folder = _server_folder(row, stack)
        listed = partial(folder_entries, folder, limits=limits)
        yield from _with_history(row, rules, listed, _folder_control(row, folder), limits, on_tick)
    else:
        path = _isolated_path(row, stack, limits)
        request = _git_request(options) if row.source == DocumentSource.GIT else _chroma_request(row)
        yield from isolated_entries(
            row.source, path, request, limits=limits, child=reader_limits(), on_fact=on_fact, on_tick=on_tick
        )
        if row.source == DocumentSource.GIT:
            yield from history_items(
                row, path, "", scratch=limits.scratch, child=reader_limits(), on_tick=on_tick
            )


def _with_history(
    row: Import,
    rules: Rules,
    listed: Callable[..., Iterator[Item]],
    controls: Iterator[tuple[Path, str] | Problem],
    limits: SourceLimits,
    on_tick: Callable[[], None],
) -> Iterator[Item | History]:
    """Yield the history of a repository inside, then the files as they are, without those that it ignores.

    Args:
        listed: lists the source's files by rules.
        controls: yields a repository and the folder of the source that it is of, and problems.
    """
    for found in controls:
        if isinstance(found, Problem):
            yield found
            continue
        control, inside = found
        kept: list[History] = []
        for item in history_items(
            row, control, inside, scratch=limits.scratch, child=reader_limits(), on_tick=on_tick
        ):
            yield item
            kept += [item] if isinstance(item, History) else []
        if kept:
            paths = [item.path for item in listed(rules=rules) if isinstance(item, Entry)]
            try:
                rules = rules.without(repository_ignored(row, kept[0].folder, inside, paths))
            except TryAgain:
                raise
            except DomainError as refusal:
                message = _("The .gitignore rules could not be read: %(why)s") % {"why": refusal.message}
                yield Problem(f"{inside}.git", Reason.HISTORY, message)
    yield from listed(rules=rules)


def _packed_control(archive: Path, limits: SourceLimits) -> Iterator[tuple[Path, str] | Problem]:
    first = True
    for base in packed_repositories(archive, limits):
        inside = base.removesuffix(".git/")
        if not first:
            message = _(
                "This is another repository: its files are imported, its history isn't. Import it separately."
            )
            yield Problem(shown(base), Reason.HISTORY, message)
            continue
        first = False
        into = Path(limits.scratch) / "repository"
        into.mkdir()
        try:
            yield unpacked_folder(archive, into, "git", limits, base), inside
        except SourceFailure as failure:
            yield Problem(
                shown(base),
                Reason.HISTORY,
                _("Its history was not kept: %(message)s") % {"message": failure.message},
            )


def _folder_control(row: Import, folder: int) -> Iterator[tuple[Path, str] | Problem]:
    path = _path_of(row, folder)
    control = path / ".git"
    if control.is_dir() and not control.is_symlink():
        yield path, ""
    elif os.path.lexists(control):
        message = _(
            "Its history was not kept: .git points elsewhere, as in a worktree or a submodule. "
            "Import a full clone."
        )
        yield Problem(".git", Reason.HISTORY, message)


def _server_folder(row: Import, stack: ExitStack) -> int:
    descriptor = folder_open(row.options["path"], paths_allowed(row.tenant.slug))
    stack.callback(os.close, descriptor)
    return descriptor


def _isolated_path(row: Import, stack: ExitStack, limits: SourceLimits) -> Path:
    if row.options.get("path"):
        return _path_of(row, _server_folder(row, stack))
    with lease(row.file) as archive:
        return unpacked_folder(archive, Path(limits.scratch), row.source, limits)


def _path_of(row: Import, judged: int) -> Path:
    try:
        return Path(os.readlink(f"/proc/self/fd/{judged}"))  # where the judged folder is now
    except OSError:
        return Path(row.options["path"])  # a system without /proc


def _git_request(options: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "with_binary": bool(options.get("with_unsearchable")),
        **{
            name: options.get(name) or default
            for name, default in (("ref", ""), ("include", []), ("exclude", []), ("with_hidden", False))
        },
    }


def _chroma_request(row: Import) -> dict[str, Any]:
    model = row.options.get("vectors_model", "")
    space = row.collection.space
    if model and model != space.model:
        raise SourceFailure(
            "vectors_of_another_model",
            _(
                "The vectors are from %(model)s; this collection's are from %(model2)s, and the two "
                "cannot be compared. Leave out the option “vectors_model”, and the passages are embedded "
                "again."
            )
            % {"model": model, "model2": space.model},
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
