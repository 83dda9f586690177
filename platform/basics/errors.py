"""The few kinds of error that a service may raise and an edge (page, API, command) knows how to show."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from basics.texts import gettext as _
from basics.texts import pgettext


class DomainError(Exception):
    """Say why an action was refused, in words for the person who asked.

    Args:
        code: stable machine name in snake case, for example ``conversation_busy``.
        message: one sentence that says what happened and what to do.
        status: HTTP status the edges answer with.
        data: extra facts for a program, JSON-serialisable.
    """

    default_status = 400

    def __init__(
        self, code: str, message: str, *, status: int | None = None, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status if status is not None else self.default_status
        self.data: dict[str, Any] = dict(data or {})


class Invalid(DomainError):
    """The input breaks a rule; ``data["fields"]`` may map a field to its messages."""

    default_status = 400


class Denied(DomainError):
    """The actor may see the object but not do this with it."""

    default_status = 403


class Missing(DomainError):
    """The object does not exist for this actor (another tenant's rows do not exist)."""

    default_status = 404

    def __init__(self, noun: str = "object", code: str = "not_found") -> None:
        super().__init__(
            code,
            # Translators: the noun comes from the texts with the context "missing".
            _("This %(noun)s does not exist, or you don't have access to it.")
            % {"noun": pgettext("missing", noun)},
        )


class TryAgain(DomainError):
    """Something outside does not answer for now and nothing is lost: the same works again later.

    A job that ends with it goes back to the queue, and no attempt of it is used up.
    """

    default_status = 503
    retry_s = 10.0


class Conflict(DomainError):
    """The state of the object does not allow the action now."""

    default_status = 409


_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SQL_DISK_FULL = "53100"


def disk_full(error: BaseException) -> DomainError | None:
    """Return the refusal to show when an exception, or one behind it, says that a disk is full; None for any other.

    It knows the system's "no space left", quotas and file size limits, and Postgres' ``disk_full`` by its SQLSTATE.
    """
    seen: BaseException | None = error
    while seen is not None:
        is_full = isinstance(seen, OSError) and seen.errno in _NO_SPACE
        if is_full or getattr(seen, "sqlstate", None) == _SQL_DISK_FULL:
            return DomainError(
                "disk_full",
                _(
                    "The server's disk is full, so nothing more could be stored. Ask the operator to free some space, then try again."
                ),
                status=507,
            )
        seen = seen.__cause__ or seen.__context__
    return None


def database_busy(error: BaseException) -> DomainError | None:
    """Return the refusal to show when an exception, or one behind it, says that no connection was free; None for any other.

    It knows the errors of ``psycopg_pool`` by their module: all of them are about getting a connection.
    """
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__module__.partition(".")[0] == "psycopg_pool":
            return DomainError(
                "database_busy",
                _(
                    "The server is too busy: no connection to its database was free. Try again in a few seconds."
                ),
                status=503,
                data={"retry_after": 5},
            )
        seen = seen.__cause__ or seen.__context__
    return None


def refusal_of(error: BaseException) -> DomainError | None:
    """Return what an edge shows of an exception: a refusal itself, a full disk or a busy database; None for a fault of ours."""
    return error if isinstance(error, DomainError) else disk_full(error) or database_busy(error)
