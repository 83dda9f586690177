"""Import a workspace from its file (``exports.files``): the same rows and files, with new numbers.

The workspace is made first, closed, so that its files can be placed (``blobs.services``); then all rows are written in one
transaction, which opens it. Whatever fails, the closed workspace is erased again. A process that is killed leaves it closed and
empty, and the next import removes it (``exports.unfinished``).
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import uuid
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import DataError, IntegrityError, connection, models, transaction
from psycopg import sql

from basics.errors import Conflict
from blobs.leases import content_of, file_digest
from blobs.models import PendingBlob
from blobs.services import keep, receive
from exports.arrivals import Arriving
from exports.files import Export, columns_exported, export_verify, schema_here
from exports.moves import USER, Arrival, arrival_order, import_hooks, moves_of, shared_models, staying
from exports.renumbering import Numbers, Rewriter, refused
from exports.unfinished import import_noted, unfinished_remove
from tenancy.actors import system_actor
from tenancy.database.base import as_login_role
from tenancy.fields import OrderedJSONField
from tenancy.models import Tenant, TenantModel, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tenancy.services.tenants import tenant_names_check

BATCH_ROWS, BATCH_CHARS = 500, 8_000_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import has made.

    Attributes:
        rows, files: how many.
        people_made: addresses of the accounts that weren't here; they have no password yet.
        stayed: table -> rows that stay in the file.
        left: table -> rows that stay in the file though others of the table moved.
        removed: addresses of workspaces that killed imports had left, and this one has removed.
    """

    tenant: Tenant
    rows: int
    files: int
    people_made: list[str]
    stayed: Mapping[str, int]
    left: Mapping[str, int]
    removed: Sequence[str] = ()


def workspace_import(source: Path, *, key: str = "", slug: str = "") -> Imported:
    """Make a workspace from the file of another one.

    Args:
        key: public key of the installation that signed it; "" for this installation's own.
        slug: its address here; "" for the one it had.

    Raises:
        Invalid: ``export_damaged``; ``import_refused``, for what the message says.
        Conflict: ``slug_taken``; ``upload_expired``, placing the files took longer than a day.
        StoreAway: the store of files doesn't answer.
    """
    told = export_verify(source, key=key)
    _fits(told)
    with Arriving(source, told) as arriving:
        arriving.check()
        row = arriving.tenant()
        address = slug or str(row["slug"])
        name = tenant_names_check(str(row["name"]), address)
        removed = unfinished_remove()
        with import_noted() as note:
            try:
                with transaction.atomic():
                    tenant = Tenant.objects.create(name=name, slug=address, is_active=False)
                    note(tenant)
            except IntegrityError:
                raise Conflict(
                    "slug_taken", f"The address “{address}” is already taken. Choose another one with --slug."
                ) from None
            made = _Import(arriving, tenant, file_digest(source)).carry_out()
    return replace(made, removed=removed)


def _fits(told: Export) -> None:
    if told.kind != "workspace":
        raise refused("it is the file of a person, not of a workspace")
    if not told.schema:
        raise refused("a version of Groundwork wrote it whose files can't be imported yet; export it again")
    here = schema_here()
    if told.schema != here:
        apps_differing = sorted(set(told.schema.items()) ^ set(here.items()))
        words = ", ".join(sorted({str(app)[:40] for app, _ in apps_differing}))
        raise refused(
            f"it comes from another version of Groundwork (tables of {words} differ); bring both servers to the same "
            "version and export again"
        )
    needed = sum(part.size for part in told.parts)
    free = shutil.disk_usage(settings.DATA_DIR).free
    if needed > free:
        raise refused(f"it needs {needed >> 20:,} MB of disk; {free >> 20:,} MB are free")


class _Import:
    def __init__(self, arriving: Arriving, tenant: Tenant, sha256: str) -> None:
        self._from, self._tenant, self._sha256 = arriving, tenant, sha256
        self._numbers = Numbers(arriving.told.subject, tenant.pk)
        self._rewriter = Rewriter(self._numbers)
        self._later: list[tuple[type[TenantModel], str, _Pairs]] = []
        self._people: list[str] = []
        self._written: set[str] = set()
        self._naming: dict[str, set[int]] = {}

    def carry_out(self) -> Imported:
        for model in arrival_order():
            self._take(model)
        for label, every in sorted(self._naming.items()):
            for old in sorted(every):
                self._numbers.name(label, old)
        self._naming.clear()
        files = self._files_place()
        rows = 0
        with transaction.atomic():
            self._people_find()
            with as_login_role():
                for model in arrival_order():
                    rows += self._table(model)
                self._references_set()
            with tenant_scope(self._tenant.pk):
                named, _ = PendingBlob.objects.filter(tenant=self._tenant, removed_at=None).delete()
                if named != files:
                    raise Conflict(
                        "upload_expired", "Placing the files took longer than a day. Import it again."
                    )
                arrival = Arrival(self._tenant, self._rewriter.marks, self._numbers.of)
                for hook in import_hooks():
                    hook(arrival)
                self._record(rows, files)
            with platform_scope():
                Tenant.objects.filter(pk=self._tenant.pk).update(is_active=True)
        self._tenant.refresh_from_db()
        return Imported(
            self._tenant, rows, files, sorted(self._people), self._from.staying(), self._from.left()
        )

    def _take(self, model: type[TenantModel]) -> None:
        """Give a table's rows their numbers, and rows that its columns name."""
        ids, label = array("q"), model._meta.label
        # People are found, not numbered.
        named = {column: target for column, target in moves_of(model).numbers.items() if target != USER}
        for row in self._from.rows(model):
            ids.append(row["id"])
            for column, target in named.items():
                old = row[column]
                if type(old) is int and not self._numbers.has(target, old):
                    self._naming.setdefault(target, set()).add(old)
        self._numbers.rows_take(label, ids)
        if label in self._naming:  # only rows that are gone have to be kept: this table tells of its own
            self._naming[label] = {old for old in self._naming[label] if not self._numbers.has(label, old)}

    def _files_place(self) -> int:
        told = {part.name: part.sha256 for part in self._from.told.parts}
        keys = self._from.files()
        for key in keys:
            here = self._rewriter.key(key)
            content = content_of(key)
            if content and content != told[f"files/{key}"]:
                raise refused("a file has other bytes than its name says")
            with self._from.file(key) as stream:
                received = receive(iter(lambda: stream.read(1 << 20), b""), max_bytes=1 << 40)
            try:
                keep(self._tenant.pk, here, received)
            finally:
                received.path.unlink(missing_ok=True)
        return len(keys)

    def _people_find(self) -> None:
        for row in self._from.people():
            with platform_scope():
                person = User.objects.filter(email__iexact=row["email"]).first()
                if person is None:
                    names = {"first_name": row["first_name"], "last_name": row["last_name"]}
                    person = User.objects.create_user(row["email"], **names)
                    self._people.append(person.email)
            self._numbers.stands_for(USER, row["id"], person.pk)
        for label, find in shared_models().items():
            for row in self._from.shared(label, apps.get_model(label)):
                with tenant_scope(self._tenant.pk):
                    self._numbers.stands_for(label, row["id"], find(row, self._tenant))

    def _table(self, model: type[TenantModel]) -> int:
        plan = _Plan(model, self._written)
        self._later += [(model, column, pairs) for column, pairs in plan.later.items()]
        count, batch, chars = 0, [], 0
        for row in self._from.rows(model):
            line = json.dumps(self._moved(plan, row), ensure_ascii=False, allow_nan=False)
            batch.append(line)
            chars += len(line)
            if len(batch) == BATCH_ROWS or chars > BATCH_CHARS:
                plan.insert(batch)
                count, batch, chars = count + len(batch), [], 0
        if batch:
            plan.insert(batch)
        self._written.add(model._meta.label)
        return count + len(batch)

    def _moved(self, plan: _Plan, row: dict[str, Any]) -> dict[str, Any]:
        numbers, told = self._numbers, plan.told
        made = dict(row)
        made["tenant_id"] = self._tenant.pk
        made["id"] = numbers.of(plan.label, row["id"])
        for column, target in plan.references.items():
            if row[column] is None:
                continue
            made[column] = self._reference(plan, column, target, row[column])
            if column in plan.later and made[column] is not None:
                plan.later[column].add(made["id"], made[column])
                made[column] = None
        for column, target in told.numbers.items():
            made[column] = self._number(plan, column, target, row[column])
        for by in told.by:
            target = by.targets.get(str(row[by.teller]), "")
            if target and row[by.column] not in (None, ""):
                made[by.column] = self._number(plan, by.column, target, row[by.column])
        for column in plan.json:
            made[column] = self._rewriter.value(row[column], told.json.get(column, {}), column)
        for column in plan.ordered:
            made[column] = None if made[column] is None else json.dumps(made[column], ensure_ascii=False)
        for column in told.text:
            made[column] = self._rewriter.text(row[column]) if isinstance(row[column], str) else row[column]
        for column, words in told.words.items():
            made[column] = self._rewriter.words(row[column], words)
        for column in told.files:
            made[column] = self._rewriter.key(row[column]) if row[column] else row[column]
        for column in told.new:
            made[column] = str(uuid.uuid4())
        for column in plan.bytes:
            made[column] = _bytes_read(plan.label, row, column)
        return made

    def _reference(self, plan: _Plan, column: str, target: str, old: Any) -> int | None:
        if target in staying():
            return None
        if isinstance(old, bool) or not isinstance(old, int) or not self._numbers.has(target, old):
            raise refused(f"a row of {plan.label} refers by {column} to a row that isn't in it")
        return self._numbers.of(target, old)

    def _number(self, plan: _Plan, column: str, target: str, old: Any) -> Any:
        if old is None or old == 0:
            return old
        is_text = isinstance(old, str)
        if is_text and old.isascii() and old.isdecimal() and len(old) < 20:
            old = int(old)
        if isinstance(old, bool) or not isinstance(old, int):
            raise refused(f"a row of {plan.label} has no number in {column}")
        new = self._numbers.of(target, old)
        return new if new is None or not is_text else str(new)

    def _references_set(self) -> None:
        """Set the references that rows have to later ones, when all rows are there."""
        for model, column, pairs in self._later:
            statement = sql.SQL(
                "UPDATE {t} SET {c} = given.b FROM unnest(%s::bigint[], %s::bigint[]) AS given (a, b) "
                "WHERE tenant_id = %s AND id = given.a"
            ).format(t=sql.Identifier(model._meta.db_table), c=sql.Identifier(column))
            for rows, targets in pairs.parts(10_000):
                with _Telling(model), connection.cursor() as cursor:
                    cursor.execute(statement, [rows, targets, self._tenant.pk])

    def _record(self, rows: int, files: int) -> None:
        head = self._from.head()
        audit_record(
            tenant=self._tenant,
            actor=system_actor(self._tenant.pk),
            action="tenant.import",
            object=self._tenant,
            data={
                "file_sha256": self._sha256,
                "signed_by": self._from.told.key,
                "written_at": self._from.told.made_at,
                "trail_head": f"{head['seq']}:{head['hash']}" if head else "",
                "rows": rows,
                "files": files,
            },
        )


class _Pairs:
    """Rows and the later rows that they refer to, as plain numbers: there may be millions."""

    def __init__(self) -> None:
        self._rows, self._targets = array("q"), array("q")

    def add(self, row: int, target: int) -> None:
        """Note that a row refers to another one."""
        self._rows.append(row)
        self._targets.append(target)

    def parts(self, size: int) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the rows with their targets, so many at once."""
        for start in range(0, len(self._rows), size):
            yield self._rows[start : start + size].tolist(), self._targets[start : start + size].tolist()


class _Plan:
    """How the rows of a table are written."""

    def __init__(self, model: type[TenantModel], written: set[str]) -> None:
        self.label, self.told = model._meta.label, moves_of(model)
        self.columns = columns_exported(model)
        fields: list[models.Field[Any, Any]] = [
            f for f in model._meta.concrete_fields if f.attname in self.columns
        ]
        self.references = {
            f.attname: f.related_model._meta.label  # type: ignore[union-attr]
            for f in fields
            if f.is_relation and f.name != "tenant"
        }
        shared = {USER, *shared_models(), *staying()}
        self.later = {
            column: _Pairs() for column, label in self.references.items() if label not in written | shared
        }
        self.json = [f.attname for f in fields if _is_json(f) and f.name not in self.told.plain]
        self.ordered = [f.attname for f in fields if isinstance(f, OrderedJSONField)]
        self.bytes = [f.attname for f in fields if isinstance(f, models.BinaryField)]
        self._model = model
        never_null = {f.attname for f in fields if isinstance(f, models.JSONField) and not f.null}
        self._statement = sql.SQL(
            "INSERT INTO {t} ({columns}) SELECT {values} FROM jsonb_populate_recordset(NULL::{t}, %s::jsonb)"
        ).format(
            t=sql.Identifier(model._meta.db_table),
            columns=sql.SQL(", ").join(map(sql.Identifier, self.columns)),
            values=sql.SQL(", ").join(
                sql.SQL("coalesce({}, 'null'::jsonb)").format(sql.Identifier(c))
                if c in never_null
                else sql.Identifier(c)
                for c in self.columns
            ),
        )

    def insert(self, lines: list[str]) -> None:
        """Write rows. Raises Invalid for one that doesn't fit into the table."""
        with _Telling(self._model), connection.cursor() as cursor:
            cursor.execute(self._statement, [f"[{','.join(lines)}]"])


class _Telling:
    """Say of which table a row was that the database refused."""

    def __init__(self, model: type[models.Model]) -> None:
        self._label = model._meta.label

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DataError | IntegrityError):
            raise refused(f"a row of {self._label} doesn't fit into its table") from error


def _is_json(f: models.Field[Any, Any]) -> bool:

    return isinstance(f, models.JSONField | OrderedJSONField | ArrayField)


def _bytes_read(label: str, row: Mapping[str, Any], column: str) -> str:
    try:
        content = base64.b64decode(row[column], validate=True)
    except (ValueError, TypeError) as error:
        raise refused(f"a row of {label} has bytes that can't be read") from error
    if hashlib.sha256(content).hexdigest() != row.get("sha256"):
        raise refused(f"a row of {label} has other bytes than its hash says")
    return f"\\x{content.hex()}"


__all__ = ["Imported", "workspace_import"]
