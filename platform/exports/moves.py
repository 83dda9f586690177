"""What an import does with the rows of a workspace's file: declared by every app, in ``AppConfig.moves``.

A declaration maps the name of a model to a line. ``stays: secret`` (or another reason of ``REASONS``) leaves its rows in the
file. Any other line has parts such as ``numbers: run_id=runs.Run; text: answer``:

numbers
    columns that hold the number of a row without being a reference. A number that no row of the file has becomes one that
    no row has here.
by
    a column whose meaning another one tells: ``by: subject_id kind member=tenancy.User``.
without
    rows that stay behind by a column's value: ``without: kind=key``, or ``without: api_key_id`` for any value.
json
    of JSON columns, further keys that hold numbers: ``json: lineage.item=datasets.GenerationItem``; see ``KEYS`` for those
    that hold them everywhere. ``manifest.collections/id`` is the key below another, ``outcome.chunks[0]`` the first of each
    pair in a list, ``levels.levels{}`` the names of an object; ``data.text=later`` leaves a text to the app's hook.
text
    text in which programs or models name rows: ``[c12]``, ``"document_id": 12``.
words
    of a text, the word before a number of a row: ``words: decision_why.rule=tools.ToolGrant`` (“rule 12 allows this call”).
plain
    JSON columns that come from documents or people: nothing is changed in them.
files
    columns that hold the key of a file; a key of another workspace is refused.
new
    columns with a random identity that no two rows of an installation share: they get another one.
last
    rows that come after all others.

A model that nobody declared moves, with its references. ``tests/exports/test_import.py`` finds numbers that stay old, and JSON
columns that nobody thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from django.apps import apps
from django.db import models

from basics.texts import gettext_noop
from erasure.workspaces import deletion_order
from tenancy.models import Tenant, TenantModel, User
from tenancy.row_security import tenant_models

PRIVATE = "private"
"""Not even in the file: a workspace's file is handed to those who run the workspace."""
REASONS = {
    "secret": "secrets and what hangs on them: set them up again",
    "computed": "made again here from what moved",
    "passing": "work and counts of the moment",
    "sealed": "the sealed trail stays in the file; the new one begins with the file's SHA-256",
    PRIVATE: "notes of people for themselves; they are in the person's own file",
}
LATER = "later"
_PARTS = {"stays", "numbers", "without", "json", "text", "words", "plain", "files", "new", "last"}
USER = User._meta.label
KEYS: dict[str, str] = {}
"""Keys that hold the number of a row in every JSON column, with the model; each app adds its own (``keys_tell``)."""


@dataclass(frozen=True, slots=True)
class By:
    """A column whose target another column of the row tells."""

    column: str
    teller: str
    targets: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Moves:
    """What is declared of a table."""

    stays: str = ""
    numbers: Mapping[str, str] = field(default_factory=dict)
    by: tuple[By, ...] = ()
    without: Mapping[str, frozenset[str]] = field(default_factory=dict)
    json: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    text: frozenset[str] = frozenset()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    last: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workspace whose rows have just been written, in the transaction that wrote them.

    Attributes:
        marks: finds the passages that a text of the file cites: where each marker begins and ends, and what it is here.
        number: returns the number here of a row of the file, by the model's label; one that no row has for a row that is
            gone, None for one that stays in the file.
        was_under_way: a sentence for work that the export interrupted.
    """

    tenant: Tenant
    marks: Callable[[str], list[tuple[int, int, str]]]
    number: Callable[[str, int], int | None]
    was_under_way: str = gettext_noop("This was under way when the workspace was exported.")


Shared = Callable[[Mapping[str, object], Tenant], int]
_hooks: list[Callable[[Arrival], None]] = []
_shared: dict[str, Shared] = {}


def on_workspace_import(hook: Callable[[Arrival], None]) -> None:
    """Have it called when the rows of a workspace are in, to end or begin work; at start-up."""
    if hook not in _hooks:
        _hooks.append(hook)


def import_hooks() -> list[Callable[[Arrival], None]]:
    """Return the hooks in the order in which they came: lower rooms first."""
    return list(_hooks)


def shared_as(label: str, find: Shared) -> None:
    """Say which row of a table that workspaces share stands here for one of another installation; at start-up."""
    _shared[label] = find


def shared_models() -> dict[str, Shared]:
    """Return how the rows of shared tables are found, by the model's label."""
    return dict(_shared)


def keys_tell(keys: Mapping[str, str]) -> None:
    """Add keys that hold numbers of rows in every JSON column; at start-up."""
    KEYS.update(keys)


@cache
def moves() -> dict[str, Moves]:
    """Return the declarations by label of the model. Raises ValueError for one that can't be read."""
    found: dict[str, Moves] = {}
    for config in apps.get_app_configs():
        for name, line in getattr(config, "moves", {}).items():
            found[f"{config.label}.{name}"] = _read(name, line)
    unknown = set(found) - {m._meta.label for m in tenant_models()}
    if unknown:
        raise ValueError(f"moves: {sorted(unknown)} are no tables of workspaces")
    return found


def moves_of(model: type[models.Model]) -> Moves:
    """Return what is declared of a table."""
    return moves().get(model._meta.label, Moves())


def _read(name: str, line: str) -> Moves:
    told: dict[str, list[str]] = {}
    by = []
    for part in filter(None, (p.strip() for p in line.split(";"))):
        kind, colon, words = part.partition(":")
        if not colon and kind != "last":
            raise ValueError(f"{name}: {part!r} has no colon")
        if kind == "by":
            column, teller, *targets = words.split()
            by.append(By(column, teller, _pairs(targets)))
        else:
            told[kind] = words.split()
    if unknown := set(told) - _PARTS:
        raise ValueError(f"{name}: {sorted(unknown)} isn't known")
    stays = "".join(told.get("stays", []))
    if stays and stays not in REASONS:
        raise ValueError(f"{name}: {stays!r} is no reason")
    without = {
        w.partition("=")[0]: frozenset(filter(None, w.partition("=")[2].split(",")))
        for w in told.get("without", [])
    }
    return Moves(
        stays=stays,
        numbers=_pairs(told.get("numbers", [])),
        by=tuple(by),
        without=without,
        json=_paths(told.get("json", [])),
        words=_paths(told.get("words", [])),
        text=frozenset(told.get("text", ())),
        plain=frozenset(told.get("plain", ())),
        files=frozenset(told.get("files", ())),
        new=frozenset(told.get("new", ())),
        last="last" in told,
    )


def _paths(words: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path, target in _pairs(words).items():
        column, _, key = path.partition(".")
        found.setdefault(column, {})[key] = target
    return found


def _pairs(words: list[str]) -> dict[str, str]:
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


@cache
def staying() -> dict[str, str]:
    """Return the tables whose rows stay in the file, with the reason; those that can't do without such a row stay too."""
    found = {label: one.stays for label, one in moves().items() if one.stays}
    while True:
        more = {
            model._meta.label: found[target]
            for model in tenant_models()
            if model._meta.label not in found
            for f in model._meta.concrete_fields
            if not f.null and f.is_relation and (target := f.related_model._meta.label) in found  # type: ignore[union-attr]
        }
        if not more:
            return found
        found |= more


def arrival_order() -> list[type[TenantModel]]:
    """Return the tables whose rows move, each behind those that its rows can't do without."""
    order = [m for m in reversed(deletion_order()) if m._meta.label not in staying()]
    return sorted(order, key=lambda model: moves_of(model).last)
