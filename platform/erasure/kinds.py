"""Documents and conversations as things to erase: their rooms say what they are, other rooms what they made of them.

An erasure first asks every room what it made (``on_content_erase``), while all rows are there. Then each removes it, from the
highest room down, as references need; the thing itself goes last. All of it is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from basics.errors import Conflict
from basics.texts import gettext as _
from erasure.models import Erasure
from erasure.reports import Report
from tenancy.models import Tenant, TenantModel


@dataclass(frozen=True, slots=True)
class Erased:
    """What is being erased, by the numbers that other rooms know it by.

    Attributes:
        documents: ids of all versions.
        passages: id of a chunk -> its text.
        names: what the documents are called: names, titles and paths.
        conversations: ids.
        runs: ids of runs that go with the conversations.
        events: label of a model -> ids of rows whose audit events lose what they say of them.
        naming: label of a model -> ids of rows whose audit events name the documents among others.
    """

    tenant: Tenant
    documents: frozenset[int] = frozenset()
    passages: Mapping[int, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    conversations: frozenset[int] = frozenset()
    runs: frozenset[int] = frozenset()
    events: Mapping[str, frozenset[int]] = field(default_factory=dict)
    naming: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ContentKind:
    """A kind of thing that can be erased by itself.

    Attributes:
        kind: its name in ``Erasure.kind``.
        model: of its rows, which have ``created_at``.
        action: the right that deleting one needs, and so erasing.
        rows: return all rows that are the same thing, such as versions of a document; each has an entry in the ledger.
        erased: return what goes, in the workspace's scope and a transaction.
        remove: delete it and report what went, in the same transaction.
    """

    kind: Erasure.Kind
    model: type[TenantModel]
    action: str
    rows: Callable[[TenantModel], list[TenantModel]]
    erased: Callable[[TenantModel], Erased]
    remove: Callable[[TenantModel, Erased, Report], None]


ContentHook = Callable[[Erased], Callable[[Report], None]]
_kinds: dict[str, ContentKind] = {}
_hooks: list[ContentHook] = []


def content_kind_register(kind: ContentKind) -> None:
    """Make a kind of thing known; at start-up."""
    _kinds[kind.kind.value] = kind


def content_kind(kind: str) -> ContentKind:
    """Return a kind by its name.

    Raises:
        Conflict: ``erasure_kind_unknown``: no room of this server registered it, so nothing of it would be erased.
    """
    if kind not in _kinds:
        raise Conflict(
            "erasure_kind_unknown",
            _(
                "This server doesn't know how to erase a %(kind)s. Another version may have requested "
                "it: update this server."
            )
            % {"kind": kind},
        )
    return _kinds[kind]


def content_kind_of(row: TenantModel) -> ContentKind:
    """Return the kind of a row. Raises LookupError for any other row."""
    for kind in _kinds.values():
        if isinstance(row, kind.model):
            return kind
    raise LookupError(f"{row._meta.label} can't be erased by itself")


def on_content_erase(hook: ContentHook) -> None:
    """Have it asked what it made of a thing that is erased; what it returns removes that, and reports it. At start-up."""
    if hook not in _hooks:
        _hooks.append(hook)


def content_hooks() -> list[ContentHook]:
    """Return the hooks in the order in which they came: lower rooms first."""
    return list(_hooks)
