"""Write a person's data, or a whole workspace, to one signed file; and verify such a file.

A ZIP with ``rows/<model>.jsonl``, one JSON object a line, ``files/<key>`` for a workspace, ``manifest.json`` with size and
SHA-256 of each, and ``manifest.sig``, the installation's signature of the manifest. No password, key, token, session or
computed column (vectors, indexes) is in it.

Since format 2 a workspace's file can be imported elsewhere (``exports.imports``): it names the people and shared rows that
its rows refer to, and the migrations that its tables have.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from allauth.mfa.models import Authenticator
from django.apps import apps
from django.contrib.postgres.search import SearchVectorField
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models.fields.json import KeyTextTransform
from pgvector.django import HalfVectorField, SparseVectorField

from basics.errors import Invalid
from blobs.leases import lease
from blobs.stores import store
from erasure.places import file_prefixes
from erasure.rules import models_all
from exports.moves import PRIVATE, USER, moves_of, shared_models
from exports.signing import is_signed, own_keys, public_key, sign
from tenancy.fields import CASCADE
from tenancy.models import OAuthToken, Tenant, User
from tenancy.row_security import tenant_foreign_keys, tenant_models
from tenancy.scope import platform_scope, tenant_scope

FORMAT = 2
_FORMATS = {1, FORMAT}
MANIFEST, SIGNATURE = "manifest.json", "manifest.sig"
MAX_MANIFEST = 64 << 20
_PIECE = 1 << 20
_SECRET = re.compile(r"password|.*_encrypted|.*sha256|session_data|session_key")
_NO_SECRETS = {  # of contents
    "collections.Document.sha256",
    "collections.FileBlob.sha256",
    "conversations.Picture.sha256",
}
_CONTENTS = {
    "collections.FileBlob.content",
    "conversations.Picture.content",
}  # bytes that nothing else has, in Base64
PERSON_COLUMNS = ("id", "email", "first_name", "last_name")
FACTOR_COLUMNS = ("id", "type", "name", "created_at", "last_used_at")
"""Of a second factor: that there is one and, of a passkey, how its person calls it. Never its secret or key."""
_COMPUTED = (models.BinaryField, models.GeneratedField, SearchVectorField, HalfVectorField, SparseVectorField)
_LEFT_OUT = {OAuthToken._meta.label, "mfa.Authenticator", "sessions.Session", "account.EmailConfirmation"}
_PART = re.compile(r"rows/[A-Za-z]\w*\.[A-Za-z]\w*\.jsonl|files/[A-Za-z0-9_-][A-Za-z0-9._/-]*")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of an export.

    Attributes:
        size: in bytes, uncompressed.
        sha256: in hex.
        rows: lines of a table, 0 for a file.
    """

    name: str
    size: int
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class Export:
    """What the manifest of an export says.

    Attributes:
        kind: "person" or "workspace".
        subject: its number.
        key: public key that signed it, in Base64.
        schema: last migration of each app with tables of workspaces; empty in files of format 1.
    """

    kind: str
    subject: int
    made_at: str
    key: str
    parts: list[Part]
    schema: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(part.rows for part in self.parts)


def workspace_export(tenant: Tenant, target: Path) -> Export:
    """Write all that a workspace has. For its operator: nothing is withheld but what is people's own (``moves.PRIVATE``).

    Raises:
        StoreAway, BlobMissing, BlobDamaged: a file can't be read.
    """
    with _Writer(target, "workspace", tenant.pk) as writer:
        with platform_scope(), transaction.atomic():
            _one_moment()
            writer.rows(Tenant, Tenant.objects.filter(pk=tenant.pk))
            for model in tenant_models():
                if moves_of(model).stays != PRIVATE:
                    writer.rows(model, model._base_manager.filter(tenant_id=tenant.pk))
            for label, ids in _referred(tenant.pk).items():
                model_of = apps.get_model(label)
                columns = PERSON_COLUMNS if label == USER else None
                writer.rows(model_of, model_of._base_manager.filter(pk__in=ids), columns)
        with tenant_scope(tenant.pk):
            keys = [kept.key for prefix in file_prefixes(tenant.pk) for kept in store().below(prefix)]
        for key in sorted(keys):
            with lease(key) as path:
                writer.file(f"files/{key}", path)
        return writer.close()


def _referred(tenant_id: int) -> dict[str, set[int]]:
    """Return the people, and the rows that workspaces share, to which a workspace's rows refer."""
    found: dict[str, set[int]] = {label: set() for label in (USER, *shared_models())}
    for model in tenant_models():
        told = moves_of(model)
        if told.stays == PRIVATE:
            continue
        columns = {
            f.attname: f.related_model._meta.label
            for f in model._meta.concrete_fields
            if f.related_model is not None
        }
        for column, label in {**columns, **told.numbers}.items():
            if label in found:
                rows = model._base_manager.filter(tenant_id=tenant_id).exclude(**{column: None})
                found[label] |= set(rows.values_list(column, flat=True).distinct())
    return found


def schema_here() -> dict[str, str]:
    """Return the last migration of each app that has tables of workspaces."""
    ours = {model._meta.app_label for model in tenant_models()}
    leaves = MigrationLoader(None, ignore_no_migrations=True).graph.leaf_nodes()
    return {app: name for app, name in sorted(leaves) if app in ours}


def columns_exported(model: type[models.Model]) -> list[str]:
    """Return the columns of a table that an export holds: none that is secret or computed."""
    return [
        f.attname
        for f in model._meta.concrete_fields
        if f"{model._meta.label}.{f.name}" in _NO_SECRETS | _CONTENTS
        or (not isinstance(f, _COMPUTED) and not _SECRET.fullmatch(f.name))
    ]


class _Encoder(DjangoJSONEncoder):
    """Writes times to the microsecond, and bytes in Base64."""

    def default(self, o: Any) -> Any:
        if isinstance(o, date):  # a datetime too
            return o.isoformat()
        if isinstance(o, bytes | memoryview):
            return base64.b64encode(o).decode("ascii")
        return super().default(o)


def person_export(person: User, target: Path) -> Export:
    """Write what is a person's in all workspaces, and what they did there. For the operator: nothing is withheld."""
    with _Writer(target, "person", person.pk) as writer:
        with platform_scope(), transaction.atomic():
            _one_moment()
            writer.rows(User, User.objects.filter(pk=person.pk))
            for model, ids in _of_person(person).items():
                writer.rows(model, model._base_manager.filter(pk__in=ids))
            factors = Authenticator.objects.filter(user_id=person.pk).annotate(
                name=KeyTextTransform("name", "data")
            )
            writer.rows(Authenticator, factors, FACTOR_COLUMNS)
        return writer.close()


def _one_moment() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


def _of_person(person: User) -> dict[type[models.Model], set[Any]]:
    """Return the ids of rows that name a person as theirs, and of those that hang below what they own."""
    found: dict[type[models.Model], set[Any]] = {}
    owned: list[tuple[type[models.Model], set[Any]]] = []
    for model in models_all():
        for field in model._meta.concrete_fields:
            is_number = field.name == "user_id" and not field.is_relation
            if field.related_model is User or is_number:
                ids = set(
                    model._base_manager.filter(**{field.attname: person.pk}).values_list("pk", flat=True)
                )
                found.setdefault(model, set()).update(ids)
                reference_to: Any = field.remote_field
                if not is_number and reference_to.on_delete is models.CASCADE:
                    owned.append((model, ids))
    while owned:
        model, ids = owned.pop()
        for child in tenant_models():
            for reference in tenant_foreign_keys(child):
                if reference.related_model is model and reference.db_on_delete == CASCADE:
                    rows = child._base_manager.filter(**{f"{reference.name}__in": ids})
                    new = set(rows.values_list("pk", flat=True)) - found.get(child, set())
                    if new:
                        found.setdefault(child, set()).update(new)
                        owned.append((child, new))
    return found


class _Writer:
    """Writes an export beside its place, and puts it there when it is whole."""

    def __init__(self, target: Path, kind: str, subject: int) -> None:
        self._target, self._draft = target, target.with_name(f".{target.name}.part")
        self._kind, self._subject = kind, subject
        self._parts: list[Part] = []

    def __enter__(self) -> _Writer:
        self._draft.unlink(missing_ok=True)
        self._draft.touch(mode=0o600)
        self._zip = zipfile.ZipFile(self._draft, "w", zipfile.ZIP_DEFLATED)
        return self

    def __exit__(self, *raised: object) -> None:
        self._zip.close()
        self._draft.unlink(missing_ok=True)

    def rows(
        self, model: type[models.Model], rows: models.QuerySet[Any], only: Sequence[str] | None = None
    ) -> None:
        """Write the rows of a table, unless it has none to show.

        Args:
            only: columns; None for all that an export holds.
        """
        if only is None and model._meta.label in _LEFT_OUT:
            return
        columns = only or columns_exported(model)
        lines = (
            json.dumps(row, cls=_Encoder, ensure_ascii=False).encode() + b"\n"
            for row in rows.order_by("pk").values(*columns).iterator(chunk_size=500)
        )
        first = next(lines, None)
        if first is not None:
            self._part(f"rows/{model._meta.label}.jsonl", _chained(first, lines), is_rows=True)

    def file(self, name: str, path: Path) -> None:
        """Write a file of the workspace."""
        with path.open("rb") as stream:
            self._part(name, iter(lambda: stream.read(_PIECE), b""), is_rows=False)

    def _part(self, name: str, pieces: Iterable[bytes], *, is_rows: bool) -> None:
        digest, size, count = hashlib.sha256(), 0, 0
        with self._zip.open(name, "w", force_zip64=True) as out:
            for piece in pieces:
                digest.update(piece)
                size, count = size + len(piece), count + 1
                out.write(piece)
        self._parts.append(Part(name, size, digest.hexdigest(), count if is_rows else 0))

    def close(self) -> Export:
        """Sign it and put it in its place."""
        now = datetime.now(UTC).isoformat()
        schema = schema_here() if self._kind == "workspace" else {}
        made = Export(self._kind, self._subject, now, public_key(), self._parts, schema)
        text = json.dumps({"format": FORMAT, **asdict(made)}, ensure_ascii=False).encode()
        self._zip.writestr(MANIFEST, text)
        self._zip.writestr(SIGNATURE, sign(text))
        self._zip.close()
        self._draft.replace(self._target)
        return made


def _chained(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def export_verify(source: Path, *, key: str = "") -> Export:
    """Read all of an export and return its manifest if every byte is what was signed.

    Args:
        key: public key of the installation that must have signed it; "" for this installation's own.

    Raises:
        Invalid: ``export_damaged``; the message says what is wrong.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            return _verified(archive, {key} if key else own_keys())
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError) as error:
        raise _damaged("it can't be read") from error


def _verified(archive: zipfile.ZipFile, keys: set[str]) -> Export:
    names = archive.namelist()
    if len(set(names)) != len(names):
        raise _damaged("it has a name twice")
    if not {MANIFEST, SIGNATURE} <= set(names):
        raise _damaged("it has no signed manifest")
    if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST or archive.getinfo(SIGNATURE).file_size > 1000:
        raise _damaged("its manifest is larger than any")
    text, signature = archive.read(MANIFEST), archive.read(SIGNATURE).decode("ascii", "replace")
    if not any(is_signed(text, signature, key) for key in keys):
        raise _damaged("its signature isn't that of the expected installation")
    try:
        raw = json.loads(text)
        if raw.pop("format") not in _FORMATS:
            raise _damaged("a newer version of Groundwork wrote it")
        found = Export(parts=[Part(**part) for part in raw.pop("parts")], **raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged("its manifest can't be read") from error
    told = {part.name: part for part in found.parts}
    if set(names) - {MANIFEST, SIGNATURE} != set(told):
        raise _damaged("its files aren't those that its manifest names")
    for part in found.parts:
        _part_check(archive, part)
    return found


def _part_check(archive: zipfile.ZipFile, part: Part) -> None:
    if not _PART.fullmatch(part.name) or ".." in part.name.split("/"):
        raise _damaged(f"{part.name[:80]!r} isn't a name of a part")
    digest, size = hashlib.sha256(), 0
    with archive.open(part.name) as stream:
        while piece := stream.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            if size > part.size:  # a bomb: no more of it is unpacked
                break
    if (size, digest.hexdigest()) != (part.size, part.sha256):
        raise _damaged(f"{part.name[:80]} isn't what was signed")


def _damaged(why: str) -> Invalid:
    return Invalid("export_damaged", f"This isn't a whole export: {why}.")
