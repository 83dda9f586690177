"""The history of the repository that an import's source is, or has inside: found, verified in the limited child, handed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from apps.collections.documents import services
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.sources.base import Problem, Reason, SourceFailure
from apps.collections.ingestion.types import ReaderLimits, ReadFailure
from apps.collections.models import Import, Repository
from apps.collections.repositories import selectors as repositories
from apps.collections.repositories.services import History
from basics.texts import Told
from basics.texts import gettext as _
from blobs import services as blobs

MAX_BYTES = 1_000_000_000
"""Of all packs of one repository, as they come. The child that reads them maps them into its address space."""
MAX_OBJECT_BYTES = 100_000_000
NAME = ".git"


def history_items(
    row: Import, control: Path, inside: str, *, scratch: str, child: ReaderLimits, on_tick: Callable[[], None]
) -> Iterator[History | Problem]:
    """Yield the history of a repository, or the problem with it: files come in whatever becomes of it.

    Args:
        control: the repository, its ``.git`` or a bare one.
        inside: folder of the source that its files lie in, "" for the top.
        scratch: folder for what the child sends.
        child: what the child may cost.
    """
    into = "/".join(part for part in (row.options.get("into", ""), inside.strip("/")) if part)
    folder = services.document_path(into) if into else ""
    place = f"{inside.strip('/')}/{NAME}".lstrip("/")
    known = Repository.objects.filter(
        tenant_id=row.tenant_id, collection_id=row.collection_id, folder=folder
    ).first()
    request = {
        "action": "history",
        "path": str(control),
        "ref": row.options.get("ref", "") if row.source == "git" else "",
        "max_bytes": MAX_BYTES,
        "max_object_bytes": MAX_OBJECT_BYTES,
        "known": sorted(set(known.refs.values())) if known else [],
    }
    with ExitStack() as stack:
        parts = _Parts(Path(scratch), stack)
        facts: dict[str, Any] = {}
        try:
            for header, blob in run_child(request, child, on_tick=on_tick, is_renewed=True):
                if "source_failure" in header:
                    raise SourceFailure(header["source_failure"], Told.of(header["message"]))
                if "history" in header:
                    facts = header["history"]
                else:
                    parts.take(int(header["part"]), str(header["kind"]), blob)
            if not facts:
                raise SourceFailure("history_damaged", _("The data ended too early."))
        except (SourceFailure, ReadFailure) as failure:
            yield Problem(
                place,
                Reason.HISTORY,
                _("Its history was not kept: %(message)s") % {"message": failure.message},
            )
            return
        history = History(folder, facts, parts.received(int(facts["packs"])))
        try:
            yield history
        finally:
            history.discard()
    if facts["left"]:
        yield Problem(
            place,
            Reason.HISTORY,
            _("Refs that cannot be kept: %(facts)s.") % {"facts": ", ".join(facts["left"][:20])},
            len(facts["left"]),
        )
    if facts["shallow"]:
        yield Problem(
            place,
            Reason.HISTORY,
            _(
                "The repository is a shallow clone, so its history is incomplete. Everything it contains "
                "was kept."
            ),
        )


class _Parts:
    """Packs and indexes as they come from the child, piece by piece."""

    def __init__(self, scratch: Path, stack: ExitStack) -> None:
        self._scratch, self._stack = scratch, stack
        self._open: dict[tuple[int, str], IO[bytes]] = {}

    def take(self, number: int, kind: str, block: bytes) -> None:
        """Add a piece to one of them."""
        key = (number, kind)
        if key not in self._open:
            path = self._scratch / f"history-{number}-{len(self._open)}"
            self._stack.callback(path.unlink, missing_ok=True)
            self._open[key] = self._stack.enter_context(path.open("w+b"))
        self._open[key].write(block)

    def received(self, packs: int) -> list[tuple[blobs.ReceivedFile, blobs.ReceivedFile]]:
        """Return each pack with its index, hashed and ready to be kept."""
        return [
            (self._received((number, "pack")), self._received((number, "index"))) for number in range(packs)
        ]

    def _received(self, key: tuple[int, str]) -> blobs.ReceivedFile:
        stream = self._open[key]
        stream.seek(0)
        return blobs.receive(iter(lambda: stream.read(1 << 20), b""), max_bytes=2 * MAX_BYTES)


def repository_ignored(row: Import, folder: str, inside: str, paths: Iterable[str]) -> frozenset[str]:
    """Return those of a source's paths that the kept repository's own ``.gitignore`` files leave out.

    Args:
        folder: of the repository in the collection.
        inside: its folder in the source.
        paths: of files, in the source.
    """
    found = Repository.objects.filter(
        tenant_id=row.tenant_id, collection_id=row.collection_id, folder=folder
    ).first()
    base = f"{inside.strip('/')}/".lstrip("/")
    below = {path[len(base) :]: path for path in paths if path.startswith(base)}
    if found is None:
        return frozenset()
    ignored = repositories.repository_ask(found, {"what": "ignored", "paths": list(below)})
    return frozenset(below[path] for path in ignored)
