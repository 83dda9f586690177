"""The ledger of erasures: outside of the database and of every backup, so that neither brings back what was erased.

One small file for each erasure, below ``erasures/`` in the data directory and beside the backups, written before anything
goes. It names nobody: kind, number and a fingerprint (SHA-256 of kind, number and the moment the row was made), so that an
entry can't hit a later row with the same number.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from backups.errors import BackupDamaged, BackupRefused
from backups.models import BackupResult
from backups.places import Place, workroom
from blobs.errors import StoreAway
from erasure.kinds import content_kind, content_kind_of
from erasure.models import Erasure
from tenancy.models import Tenant, TenantModel, User

Subject = Tenant | User | TenantModel

FOLDER = "erasures"
FORMAT = 1
_NAME = re.compile(r"\d{8}T\d{12}Z-[0-9a-f]{12}\.json")
_MAX_BYTES = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One erasure.

    Attributes:
        kind: of ``Erasure.Kind``.
        subject: number of the workspace, person, document or conversation.
        fingerprint: of the row, 64 hex digits.
        at: ISO 8601, UTC.
    """

    kind: str
    subject: int
    fingerprint: str
    at: str


def _kind_of(row: Subject) -> Erasure.Kind:
    if isinstance(row, Tenant):
        return Erasure.Kind.WORKSPACE
    return Erasure.Kind.PERSON if isinstance(row, User) else content_kind_of(row).kind


def fingerprint(row: Subject) -> str:
    """Return what tells a row from any other of its kind with the same number."""
    told: Any = row
    kind, made = _kind_of(row), told.date_joined if isinstance(row, User) else told.created_at
    text = f"{kind.value}:{row.pk}:{made.astimezone(UTC).isoformat()}"
    return hashlib.sha256(text.encode()).hexdigest()


def ledger_write(row: Subject) -> list[str]:
    """Note that a row is about to be erased, in the data directory and beside all backups that are known of.

    Returns:
        Addresses of places with older backups that couldn't be reached: a backup there would bring the row back.

    Raises:
        StoreAway, OSError: the data directory or the place of ``GROUNDWORK_BACKUP_URL`` doesn't answer. Nothing may be
            erased then.
    """
    now = datetime.now(UTC)
    entry = Entry(_kind_of(row).value, row.pk, fingerprint(row), now.isoformat())
    name = f"{now:%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(6)}.json"
    with workroom() as folder:
        path = folder / "entry"
        for url in [str(_home()), *([settings.BACKUP_URL] if settings.BACKUP_URL else [])]:
            _put(url, name, path, entry)
        missed = []
        for url in _urls_known() - {settings.BACKUP_URL}:
            try:
                _put(url, name, path, entry)
            except (StoreAway, OSError, BackupRefused):
                missed.append(url)
    return sorted(missed)


def _put(url: str, name: str, path: Path, entry: Entry) -> None:
    path.unlink(missing_ok=True)  # a place that took it may share its bytes
    path.write_text(json.dumps({"format": FORMAT, **asdict(entry)}))
    Place(url).put(f"{FOLDER}/{name}", path)


def _urls_known() -> set[str]:
    kind = BackupResult.Kind.CREATE
    return set(BackupResult.objects.filter(kind=kind).exclude(name="").values_list("url", flat=True))


def _home() -> Path:
    """Return the folder of this machine's own ledger, which is a place like those of backups."""
    return Path(settings.DATA_DIR) / "ledger"


def ledger_read(urls: Iterable[str]) -> list[Entry]:
    """Return the entries at places of backups and in the data directory, each once.

    Raises:
        BackupDamaged: an entry can't be read; nothing may be opened that it should have erased.
        StoreAway: a place doesn't answer.
    """
    found: dict[str, Entry] = {}
    for url in dict.fromkeys([str(_home()), *urls]):
        place = Place(url)
        for kept in place.store.below(f"{FOLDER}/"):
            name = kept.key.rpartition("/")[2]
            if name not in found and _NAME.fullmatch(name):
                found[name] = _entry(place, kept.key)
    return [found[name] for name in sorted(found)]


def _entry(place: Place, key: str) -> Entry:
    with workroom() as folder:
        place.fetch(key, folder / "entry")
        if (folder / "entry").stat().st_size > _MAX_BYTES:
            raise BackupDamaged(key, "it is larger than any entry")
        try:
            raw = json.loads((folder / "entry").read_text())
            if raw.pop("format") != FORMAT:
                raise BackupRefused(
                    f"{key} was written by a newer version of Groundwork. Install that version."
                )
            entry = Entry(**raw)
            is_right = entry.kind in Erasure.Kind.values and isinstance(entry.subject, int)
            if not is_right or not re.fullmatch(r"[0-9a-f]{64}", entry.fingerprint):
                raise ValueError("a wrong value")
        except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise BackupDamaged(key, "it isn't an entry of the ledger of erasures") from error
    return entry


def subject_of(entry: Entry) -> Subject | None:
    """Return the row that an entry is about, if it is there; a later one with the same number isn't.

    In the platform's scope: an entry names no workspace.

    Raises:
        Conflict: ``erasure_kind_unknown``.
    """
    row: Subject | None
    if entry.kind == Erasure.Kind.WORKSPACE:
        row = Tenant.objects.filter(pk=entry.subject).first()
    elif entry.kind == Erasure.Kind.PERSON:
        row = User.objects.filter(pk=entry.subject).first()
    else:
        row = content_kind(entry.kind).model._base_manager.filter(pk=entry.subject).first()
    return row if row is not None and fingerprint(row) == entry.fingerprint else None
