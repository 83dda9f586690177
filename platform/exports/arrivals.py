"""Read the rows of a workspace's file that somebody else may have made: what isn't expected is refused, nothing is guessed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models

from exports.files import PERSON_COLUMNS, Export, columns_exported
from exports.moves import USER, arrival_order, moves_of, shared_models, staying
from exports.renumbering import MOST, refused
from tenancy.models import AuditChain, Tenant
from tenancy.row_security import tenant_models

MAX_LINE = 256 << 20
MAX_DEPTH = 100


class Arriving:
    """The rows of a verified file.

    Args:
        source: the file.
        told: its manifest, as ``export_verify`` returned it.
    """

    def __init__(self, source: Path, told: Export) -> None:
        self._archive = zipfile.ZipFile(source)
        self.told = told
        self._parts = {part.name for part in told.parts}

    def __enter__(self) -> Arriving:
        return self

    def __exit__(self, *raised: object) -> None:
        self._archive.close()

    def files(self) -> list[str]:
        """Return the keys of its files."""
        return sorted(name.removeprefix("files/") for name in self._parts if name.startswith("files/"))

    def file(self, key: str) -> IO[bytes]:
        """Open a file."""
        return self._archive.open(f"files/{key}")

    def check(self) -> None:
        """Look whether it has tables that this installation doesn't know, and exactly one workspace."""
        known = {m._meta.label for m in tenant_models()} | {Tenant._meta.label, USER, *shared_models()}
        for name in sorted(self._parts):
            label = name.removeprefix("rows/").removesuffix(".jsonl")
            if name.startswith("rows/") and label not in known:
                raise refused(f"it has rows of “{label[:60]}”, which isn't a table of workspaces")

    def tenant(self) -> dict[str, Any]:
        """Return the workspace's own row."""
        rows = list(self._lines(Tenant._meta.label, columns_exported(Tenant)))
        if len(rows) != 1 or rows[0]["id"] != self.told.subject:
            raise refused("it isn't the file of one workspace")
        return rows[0]

    def head(self) -> dict[str, Any] | None:
        """Return the head of the audit trail that stays in the file, None without one."""
        return next(self._lines(AuditChain._meta.label, columns_exported(AuditChain)), None)

    def people(self) -> list[dict[str, Any]]:
        """Return the people that its rows refer to, each once and with an address."""
        rows = list(self._lines(USER, PERSON_COLUMNS))
        seen: set[str] = set()
        for row in rows:
            try:
                validate_email(row["email"])
            except (ValidationError, TypeError) as error:
                raise refused("a person has no address") from error
            row["email"] = row["email"].lower()
            if row["email"] in seen:
                raise refused("it has two people with one address")
            seen.add(row["email"])
            if not all(isinstance(row[name], str) and len(row[name]) <= 150 for name in PERSON_COLUMNS[2:]):
                raise refused("a person's name can't be read")
        return rows

    def shared(self, label: str, model: type[models.Model]) -> Iterator[dict[str, Any]]:
        """Yield the rows that workspaces share."""
        return self._lines(label, columns_exported(model))

    def rows(self, model: type[models.Model]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table that move."""
        without = moves_of(model).without
        for row in self._lines(model._meta.label, columns_exported(model)):
            if row["tenant_id"] != self.told.subject:
                raise refused(f"a row of {model._meta.label} is another workspace's")
            if not any(_is_left(row[column], values) for column, values in without.items()):
                yield row

    def staying(self) -> dict[str, int]:
        """Return how many rows of which table stay in the file."""
        counts = {part.name: part.rows for part in self.told.parts}
        return {label: rows for label in sorted(staying()) if (rows := counts.get(f"rows/{label}.jsonl", 0))}

    def left(self) -> dict[str, int]:
        """Return how many rows stay behind of tables whose other rows move."""
        found = {}
        for model in arrival_order():
            without = moves_of(model).without
            if not without:
                continue
            lines = self._lines(model._meta.label, columns_exported(model))
            count = sum(any(_is_left(row[c], values) for c, values in without.items()) for row in lines)
            if count:
                found[model._meta.label] = count
        return found

    def _lines(self, label: str, columns: list[str] | tuple[str, ...]) -> Iterator[dict[str, Any]]:
        name = f"rows/{label}.jsonl"
        if name not in self._parts:
            return
        wanted, last = set(columns), 0
        with self._archive.open(name) as stream:
            while line := stream.readline(MAX_LINE):
                row = _parsed(line, label)
                if set(row) != wanted:
                    odd = ", ".join(sorted(set(row) ^ wanted))[:200]
                    raise refused(f"a row of {label} has other columns than its table here ({odd})")
                pk = row.get("id")
                if "id" in wanted and (isinstance(pk, bool) or not isinstance(pk, int) or not 0 < pk <= MOST):
                    raise refused(f"a row of {label} has no number")
                if pk is not None:  # an export writes them in rising order
                    if pk <= last:
                        raise refused(f"it has a row of {label} twice, or not in its order")
                    last = pk
                yield row


def _parsed(line: bytes, label: str) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise refused(f"a row of {label} is longer than {MAX_LINE >> 20} MB, or cut off")
    try:
        row = json.loads(line, parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise refused(f"a row of {label} can't be read") from error
    if not isinstance(row, dict):
        raise refused(f"a row of {label} can't be read")
    if _depth(row) > MAX_DEPTH:
        raise refused(f"a row of {label} is nested too deeply")
    return row


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} isn't a number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _depth(value: Any) -> int:
    level, at = 0, [value]
    while at:
        level += 1
        if level > MAX_DEPTH:
            break
        at = [
            item
            for one in at
            for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        ]
    return level


def _is_left(value: Any, values: frozenset[str]) -> bool:
    return str(value) in values if values else value is not None
