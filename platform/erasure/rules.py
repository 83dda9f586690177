"""What an erasure does to each column that can hold text: declared by every app, in ``AppConfig.erasure``.

A declaration maps the name of a model to a line such as ``names: name note; content: text; codes: status``:

names
    labels, notes and facts. A person's names and addresses are replaced in them.
content
    what the workspace collected or made: documents and what follows from them. It goes with its workspace, its document or
    its conversation; a name of a person inside of it stays, and the report counts where.
codes
    written by programs: states, digests, numbers, encrypted values. No person's text is in them.

A column that nobody declared is treated as ``names``, and ``tests/erasure/test_rules.py`` fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from tenancy.models import Tenant, User

KINDS = ("names", "content", "codes")
_TEXT = (
    models.CharField,
    models.TextField,
    models.JSONField,
    models.BinaryField,
    models.GenericIPAddressField,
    models.FileField,
    ArrayField,
    SearchVectorField,
    HalfVectorField,
    SparseVectorField,
)
PersonHook = Callable[[User], Mapping[str, int]]
WorkspaceHook = Callable[[Tenant], Callable[[], None]]
_person_hooks: list[PersonHook] = []
_workspace_hooks: list[WorkspaceHook] = []


@dataclass(frozen=True, slots=True)
class Declared:
    """The columns of a table by what an erasure does to them."""

    names: frozenset[str] = frozenset()
    content: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()

    def all(self) -> frozenset[str]:
        """Return every column that is declared."""
        return self.names | self.content | self.codes


def on_person_erase(hook: PersonHook) -> None:
    """Have it called before a person's rows go, to remove what no reference tells to be theirs; at start-up.

    It runs in the transaction of the erasure and in the platform's scope, and returns how many rows of what it removed.
    """
    if hook not in _person_hooks:
        _person_hooks.append(hook)


def person_hooks() -> list[PersonHook]:
    """Return the hooks in the order in which they came."""
    return list(_person_hooks)


def on_workspace_erase(hook: WorkspaceHook) -> None:
    """Have it called before a workspace's rows go; what it returns is called when they are gone. At start-up."""
    if hook not in _workspace_hooks:
        _workspace_hooks.append(hook)


def workspace_hooks() -> list[WorkspaceHook]:
    """Return the hooks in the order in which they came."""
    return list(_workspace_hooks)


def models_all() -> list[type[models.Model]]:
    """Return every model that has a table of its own; the queue's library has rows only while it hands them over."""
    return [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model._meta.app_label != "django_q"
    ]


def text_columns(model: type[models.Model]) -> Iterator[models.Field[Any, Any]]:
    """Yield the columns that can hold text, bytes or lists; numbers, times and references can't hold a name."""
    for field in model._meta.concrete_fields:
        told = field.output_field if isinstance(field, models.GeneratedField) else field
        if isinstance(told, _TEXT) and not field.is_relation:
            yield field


@cache
def declared() -> dict[str, Declared]:
    """Return the declarations by label of the model, such as ``runs.Run``.

    Raises:
        ValueError: a declaration can't be read, or names a column twice.
    """
    found: dict[str, Declared] = {}
    for config in apps.get_app_configs():
        for name, line in getattr(config, "erasure", {}).items():
            label = name if "." in name else f"{config.label}.{name}"
            if label in found:
                raise ValueError(f"{label} is declared twice")
            found[label] = _read(label, line)
    return found


def _read(label: str, line: str) -> Declared:
    columns: dict[str, frozenset[str]] = {}
    for part in filter(None, (p.strip() for p in line.split(";"))):
        kind, colon, names = part.partition(":")
        if kind not in KINDS or not colon or kind in columns:
            raise ValueError(f"{label}: {part!r} isn't “names: …”, “content: …” or “codes: …”")
        columns[kind] = frozenset(names.split())
    if sum(map(len, columns.values())) != len(frozenset().union(*columns.values())):
        raise ValueError(f"{label}: a column is declared twice")
    return Declared(**columns)


def undeclared() -> list[str]:
    """Return what the declarations lack or have too much: columns as ``label.column``."""
    wrong = []
    known = declared()
    for model in models_all():
        there = {f.name for f in text_columns(model)}
        told = known.get(model._meta.label, Declared()).all()
        wrong += [f"{model._meta.label}.{name}" for name in sorted(there ^ told)]
    labels = {model._meta.label for model in models_all()}
    return wrong + sorted(set(known) - labels)


def columns_of(model: type[models.Model], kind: str) -> list[models.Field[Any, Any]]:
    """Return a table's columns of one kind; what nobody declared counts as ``names``."""
    told = declared().get(model._meta.label, Declared())
    others = told.content | told.codes
    if kind == "names":
        return [f for f in text_columns(model) if f.name not in others]
    return [f for f in text_columns(model) if f.name in getattr(told, kind)]
