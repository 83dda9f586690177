"""Writes of a collection's repositories: the history that an import brings, and commits of the files as they are now."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from apps.collections.ingestion.sources.git_history import ref_is_safe
from apps.collections.models import Collection, Repository, RepositoryPack
from apps.collections.repositories import selectors as repositories
from apps.collections.storage import originals as files
from apps.collections.tree.repository_facts import repository_bytes
from apps.collections.tree.rules import FileRules
from apps.collections.tree.store import file_bytes, files_stored
from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from blobs import services as blobs
from jobs.notify import notify
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant, User
from tenancy.services import audit_record

MAX_FILES = 2_000
MAX_BYTES = 30_000_000
_MERGED = 32  # small packs of commits made here become one, so that reading stays quick
_MAX_MESSAGE = 10_000


@dataclass(frozen=True, slots=True)
class History:
    """A repository's history as the limited child sent it.

    Attributes:
        folder: of the collection, where its files lie.
        facts: head, refs, shallow, left, has; see ``history_read``.
        packs: each with its index, verified.
    """

    folder: str
    facts: dict[str, Any]
    packs: list[tuple[blobs.ReceivedFile, blobs.ReceivedFile]] = field(default_factory=list)

    def discard(self) -> None:
        """Delete what was not kept."""
        for one in (file for pair in self.packs for file in pair):
            one.discard()


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit made here: its id, its branch, and the paths that it changed, as they are in the collection."""

    commit: str
    branch: str
    paths: list[str]


def history_keep(
    *, tenant: Tenant, actor: Actor, collection: Collection, history: History
) -> tuple[Repository, list[str]]:
    """Keep a repository's history, whose packs were placed by ``packs_keep``, in place of what an earlier import of the same folder brought.

    Commits made here are never lost: a branch that has some which the new history lacks stays, and the new one is kept
    beside it as ``origin/<branch>``.

    Returns:
        The repository, and sentences for its owner.

    Raises:
        Invalid: ``quota_exceeded``.
    """
    actor.require("document.write")
    facts = history.facts
    with transaction.atomic():
        blobs.key_lock(f"git:{collection.pk}:{history.folder}")
        row = (
            Repository.objects.select_for_update()
            .filter(tenant=tenant, collection=collection, folder=history.folder)
            .first()
        )
        kept = {pack.file: pack for pack in row.packs.all()} if row else {}
        _quota(tenant, collection, history, kept)
        row = row or Repository(tenant=tenant, collection=collection, folder=history.folder)
        has_own = any(pack.is_made_here for pack in kept.values())
        refs: dict[str, str] = dict(facts["refs"])
        said: list[str] = []
        if has_own:
            refs, said = _joined(row, facts)
        if not has_own or refs.get(row.head) == facts["refs"].get(row.head):
            row.head = facts["head"]
        row.refs, row.shallow, row.left_out = (
            refs,
            sorted({*facts["shallow"], *(row.shallow if has_own else ())}),
            [],
        )
        row.save()
        new = {_pack_add(tenant, row, *pair, is_made_here=False).file for pair in history.packs}
        for key, pack in kept.items():
            if key not in new and not has_own:
                pack_remove(pack)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="repository.import",
            object=collection,
            data={"folder": row.folder, "head": row.head, "refs": len(refs)},
        )
    return row, said


def _joined(row: Repository, facts: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the refs of a repository that has commits made here, with those of a new import."""
    refs, said = dict(facts["refs"]), []
    for name, sha in row.refs.items():
        if not name.startswith("refs/heads/") or sha in facts["has"] or refs.get(name) == sha:
            continue
        branch = name.removeprefix("refs/heads/")
        if name in refs:
            refs[f"refs/remotes/origin/{branch}"] = refs[name]
            said.append(
                f"The branch “{branch}” has commits made here, so it stays; what was imported is “origin/{branch}”."
            )
        refs[name] = sha
    return refs, said


def _quota(tenant: Tenant, collection: Collection, history: History, kept: dict[str, RepositoryPack]) -> None:
    stored = files_stored(system_actor(tenant.pk), collection.pk).values()
    coming = sum(one.size for pair in history.packs for one in pair)
    FileRules.of(collection.file_rules).check_quota(
        files=len(stored),
        total_bytes=sum(file.size for file in stored)
        + repository_bytes(collection)
        - sum(pack.size for pack in kept.values() if not pack.is_made_here)
        + coming,
    )


def left_out_settle(*, tenant: Tenant, collection: Collection, row: Repository, is_seen: Any = None) -> None:
    """Note which files of the last commit an import left out, so that they are not taken for deleted ones.

    Args:
        is_seen: tells of a path in the collection whether the import met it; None when it met all there are.
    """
    there = {*files_stored(system_actor(tenant.pk), collection.pk, folder=row.folder)}
    base = f"{row.folder}/" if row.folder else ""
    tracked = repositories.repository_ask(row, {"what": "tracked"})
    row.left_out = [
        path for path in tracked if base + path not in there and (is_seen is None or is_seen(base + path))
    ]
    row.save(update_fields=["left_out", "updated_at"])


def git_commit(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection,
    message: str,
    paths: Sequence[str] = (),
    branch: str = "",
    repository: str = "",
) -> Committed:
    """Commit files as they are now on top of the last commit; the author is the actor's person.

    Args:
        message: what was done and why; the first line is the subject.
        paths: commit only these files and folders; none means all that ``git_status`` lists, new files too.
        branch: a new branch for the commit, made where the head is; needed when the head is detached.
        repository: its folder, where the collection has several.

    Raises:
        Invalid: no message, no person, a bad or taken branch, too much at once, a path that did not change.
        Conflict: ``nothing_to_commit``; ``head_detached``; ``head_moved`` when somebody else committed meanwhile.
        Denied: the files may not be written, or the history is closed to the actor.
    """
    actor.require("document.write")
    author, message = _author(actor), message.replace("\0", "").strip()
    if not message or len(message) > _MAX_MESSAGE:
        raise Invalid(
            "message_invalid",
            _("Give the commit a message of 1 to %(max_message)s characters.")
            % {"max_message": _MAX_MESSAGE},
        )
    row = repositories.repository_get(actor=actor, collection=collection, repository=repository)
    if FileRules.of(collection.file_rules).read_only:
        raise Denied(
            "files_read_only",
            _("The files of this collection can't be changed: its settings make them read-only (read_only)."),
        )
    head = _branch(row, branch)
    contents, paths = _changes(actor, collection, row, paths)
    own = list(row.packs.order_by("pk"))
    merged = [n for n, pack in enumerate(own) if pack.is_made_here]
    merged = merged if len(merged) >= _MERGED else []
    made = repositories.repository_ask(
        row,
        {
            "what": "commit",
            "changes": contents,
            "author": author,
            "time": int(time.time()),
            "message": message.encode("utf-8", "replace").decode(),
            "merge": merged,
        },
    )
    received = [_received(made[part]) for part in ("pack", "index")]
    try:
        packs_keep(tenant, collection, received)
        with transaction.atomic():
            locked = Repository.objects.select_for_update().filter(tenant=tenant, pk=row.pk).first()
            if locked is None:
                raise Missing("repository")
            if (locked.head, locked.refs) != (row.head, row.refs):
                raise Conflict(
                    "head_moved",
                    _("Someone else has committed in the meantime. Check the status and commit again."),
                )
            _pack_add(tenant, locked, *received, is_made_here=True)
            for number in merged:
                pack_remove(own[number])
            locked.head, locked.refs = head, {**locked.refs, head: made["commit"]}
            locked.save()
            audit_record(
                tenant=tenant,
                actor=actor,
                action="repository.commit",
                object=collection,
                data={"folder": row.folder, "commit": made["commit"], "branch": head, "count": len(paths)},
            )
            notify(tenant.pk, f"collection:{collection.pk}")
    finally:
        for one in received:
            one.discard()
    return Committed(made["commit"], head.removeprefix("refs/heads/"), paths)


def _author(actor: Actor) -> str:
    """Return the person that an actor acts for, as git writes people."""
    user = User.objects.filter(pk=actor.user_id or 0).first()
    if user is None:
        raise Invalid(
            "author_missing",
            _("A commit needs an author, so only a person or a key that acts for one can make it."),
        )
    name, address = (
        "".join(ch for ch in text if ch.isprintable() and ch not in "<>").strip(" .,;:'\"")
        for text in (user.get_full_name() or user.email, user.email)
    )
    return f"{name or address} <{address}>"


def _branch(row: Repository, branch: str) -> str:
    """Return the ref that a commit goes onto."""
    if branch:
        name = f"refs/heads/{branch}"
        if not ref_is_safe(name):
            raise Invalid(
                "branch_invalid", _("“%(branch)s” isn't a valid branch name.") % {"branch": branch[:100]}
            )
        inner = any(known.startswith(f"{name}/") or name.startswith(f"{known}/") for known in row.refs)
        if (name in row.refs and name != row.head) or inner:
            raise Invalid(
                "branch_taken",
                _("The branch “%(branch)s” already exists, or the name conflicts with another branch.")
                % {"branch": branch},
            )
        return name
    if not row.head.startswith("refs/heads/"):
        raise Conflict(
            "head_detached",
            _("The files come from the commit %(head)s, not from a branch. Name a new branch for the commit.")
            % {"head": row.head[:12]},
        )
    return row.head


def _changes(
    actor: Actor, collection: Collection, row: Repository, paths: Sequence[str]
) -> tuple[dict[str, str | None], list[str]]:
    """Return what a commit changes, by path in the repository, and the paths in the collection."""
    now = repositories.files_below(actor, collection, row)
    status = repositories.status_of(actor, collection, row, now)
    changed = [*(one["path"] for one in status["changed"]), *status["untracked"]]
    wanted = [path.strip("/") for path in paths]
    for path in wanted:
        if not any(one == path or one.startswith(f"{path}/") for one in changed):
            raise Invalid(
                "path_unchanged",
                _("Nothing changed in “%(path)s” since the last commit.") % {"path": path[:200]},
            )
    chosen = [
        one
        for one in changed
        if not wanted or any(one == path or one.startswith(f"{path}/") for path in wanted)
    ]
    if not chosen:
        raise Conflict(
            "nothing_to_commit",
            _("Nothing has changed since the last commit, so there is nothing to commit."),
        )
    base = len(row.folder) + 1 if row.folder else 0
    found = {one[base:]: now.get(one[base:]) for one in chosen}
    if len(found) > MAX_FILES or sum(file.size for file in found.values() if file) > MAX_BYTES:
        raise Invalid(
            "commit_too_large",
            _("Commit at most %(max_files)s files with %(max_bytes)s bytes at once. Choose fewer paths.")
            % {"max_files": MAX_FILES, "max_bytes": MAX_BYTES},
        )
    return {
        path: None
        if file is None
        else base64.b64encode(file_bytes(collection.pk, actor.tenant_id, file)).decode()
        for path, file in found.items()
    }, chosen


def _received(text: str) -> blobs.ReceivedFile:
    content = base64.b64decode(text)
    return blobs.receive([content], max_bytes=len(content))


def packs_keep(tenant: Tenant, collection: Collection, received: Iterable[blobs.ReceivedFile]) -> None:
    """Place packs and indexes, before the transaction that names them; the caller discards them in any case.

    Raises:
        StoreAway: the file store does not answer.
    """
    for one in received:
        blobs.keep(tenant.pk, files.file_key(tenant.pk, collection.pk, one.sha256), one)


def _pack_add(
    tenant: Tenant,
    row: Repository,
    pack: blobs.ReceivedFile,
    index: blobs.ReceivedFile,
    *,
    is_made_here: bool,
) -> RepositoryPack:
    keys = [files.file_key(tenant.pk, row.collection_id, one.sha256) for one in (pack, index)]
    for key, received in zip(keys, (pack, index), strict=True):
        blobs.name(received, key)
    found: RepositoryPack = RepositoryPack.objects.get_or_create(
        tenant=tenant,
        repository=row,
        file=keys[0],
        defaults={"index": keys[1], "size": pack.size + index.size, "is_made_here": is_made_here},
    )[0]
    return found


def pack_remove(pack: RepositoryPack) -> None:
    """Delete a pack in the current transaction; its files go after the commit."""
    for key in (pack.file, pack.index):
        blobs.drop(pack.tenant_id, key)
    pack.delete()
