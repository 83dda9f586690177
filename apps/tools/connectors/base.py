"""What a source of tools must be able to do, and the form in which a tool is found there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from basics.errors import DomainError
from basics.texts import gettext as _

if TYPE_CHECKING:
    from apps.tools.models import ToolSource, ToolVersion
    from toolloop.tools import Tool


IN_DB = "tool_sources_in_db"
"""Key of ``ToolContext.data``: an awaitable that runs a function where the database may be used, in the tenant's scope."""


class SourceError(DomainError):
    """A source cannot be read or used; the message says what is wrong and what to do about it."""

    def __init__(self, message: str, *, code: str = "source_unusable") -> None:
        super().__init__(code, message, status=400)


@dataclass(frozen=True, slots=True)
class FoundTool:
    """One tool as its source describes it.

    Attributes:
        name: as models call it: the source's name, ``_``, and the operation's; at most 64 of ``[A-Za-z0-9_-]``.
        title: for people; may be empty.
        description: what a model reads.
        parameters: JSON Schema of the arguments object.
        returns: JSON Schema of the result, empty when the source states none.
        examples: argument objects.
        category, tags: for finding it.
        side_effects: it changes something outside; when a source does not say, it does.
        idempotent: doing it again does no harm.
        timeout_s: seconds a call may take, None for the run's own limit.
        wire: how the kind calls it (method and path, the server's own name for it, ...); nothing secret.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    title: str = ""
    returns: Mapping[str, Any] = field(default_factory=dict)
    examples: Sequence[Mapping[str, Any]] = ()
    category: str = ""
    tags: Sequence[str] = ()
    side_effects: bool = True
    idempotent: bool = False
    timeout_s: float | None = None
    wire: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON, as ``ToolVersion.spec`` holds it."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> FoundTool:
        """Return what ``to_json`` gave; unknown keys of a newer release are left out."""
        return cls(**{k: v for k, v in spec.items() if k in cls.__dataclass_fields__})

    def digest(self) -> str:
        """Return the SHA-256 of the tool's form: equal for two tools that a caller cannot tell apart."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SourceKind:
    """What one kind of source does.

    Attributes:
        name: value of ``ToolSource.kind``.
        check: look at a source's fields before it is stored; raises ``basics.errors.Invalid`` naming the field.
        read: find the tools. Blocks on the network for at most a minute; called in a job, outside of transactions, within
            the tenant's scope. It may fill in the source's ``document``, an empty ``url`` or ``title``, and keys of
            ``settings``; they are stored with the versions. Raises ``SourceError``.
        make: turn accepted versions into tools. Touches neither network nor database; a tool's function does, when it is
            called: the database through ``ToolContext.data[IN_DB]``.
    """

    name: str
    check: Callable[[ToolSource], None]
    read: Callable[[ToolSource], Sequence[FoundTool]]
    make: Callable[[ToolSource, Sequence[ToolVersion]], Iterable[Tool]]


_kinds: dict[str, SourceKind] = {}


def kind_register(kind: SourceKind) -> None:
    """Add a kind of source; call it in ``AppConfig.ready``.

    Raises:
        ValueError: another one has the name.
    """
    if _kinds.setdefault(kind.name, kind) != kind:
        raise ValueError(f"two kinds of tool sources are named {kind.name!r}: rename one")


def kind_get(name: str) -> SourceKind:
    """Return a registered kind.

    Raises:
        SourceError: this installation has none of that name.
    """
    found = _kinds.get(name)
    if found is None:
        raise SourceError(_("This server can't read tools of the kind “%(name)s”.") % {"name": name})
    return found
