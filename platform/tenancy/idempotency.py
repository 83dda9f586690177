"""Answer a repeated write with the answer it had the first time, and never do it twice.

The write, and the row with its answer, are one transaction, which begins by taking an advisory lock on the key. So there
is no state "under way" that a crash could leave behind: lock and half a write go with the connection. What fails is
rolled back and frees its key.

A write that waits for others' work cannot be one transaction, and must not hold a connection while it waits. The keys of all
such writes of a process are locked over one connection apart, which goes with the process too.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connection
from django.utils import timezone

from basics.errors import DomainError
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.database.direct import direct_connection
from tenancy.models import IdempotentAnswer, Tenant
from tenancy.scope import platform_scope

LIFETIME = timedelta(hours=24)
MAX_KEY = 255
RETRY_AFTER_S = 1
_PURPOSE = "idempotent-answer"
_TRY = "SELECT pg_try_advisory_lock(%s)"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored answer: HTTP status and the body's text ("" for none)."""

    status: int
    body: str


class KeyInUse(DomainError):
    """The first request with this key is still under way; ``retry_after_s`` says when to look again."""

    default_status = 409
    retry_after_s = RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__(
            "idempotency_key_in_use",
            "A request with this Idempotency-Key is still in progress. Send it again in a moment.",
            data={"retry_after": self.retry_after_s},
        )


class KeyReused(DomainError):
    """The key belongs to another request."""

    default_status = 422

    def __init__(self) -> None:
        super().__init__(
            "idempotency_key_reused",
            "This Idempotency-Key was already used for a different request. Create a new key for each "
            "request.",
        )


class _Keys:
    """The keys that this process holds for writes that wait: advisory locks of one connection, open while there are any.

    A lost connection loses its locks; the next call takes them again. Until then other processes do not see them.
    """

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._mutex = threading.Lock()
        self._line: psycopg.Connection[Any] | None = None

    def take(self, number: int) -> bool:
        """Take a key; False when somebody has it."""
        with self._mutex:
            if number in self._numbers:  # a session may take its own lock twice
                return False
            with connection.wrap_database_errors:
                is_taken = self._locked(number)
            if is_taken:
                self._numbers.add(number)
            self._rest()
            return is_taken

    def give_back(self, number: int) -> None:
        """Give a key back."""
        with self._mutex:
            self._numbers.discard(number)
            if self._line is not None:
                try:
                    self._line.execute("SELECT pg_advisory_unlock(%s)", (number,))
                except psycopg.OperationalError:  # the line was lost, and the lock with it
                    self._close()
            self._rest()

    def _locked(self, number: int) -> bool:
        try:
            return self._lock(number)
        except psycopg.OperationalError:  # the line was lost since it was last used
            self._close()
            return self._lock(number)

    def _lock(self, number: int) -> bool:
        if self._line is None:
            self._line = direct_connection()
            for held in self._numbers:
                self._line.execute(_TRY, (held,))
        row: Any = self._line.execute(_TRY, (number,)).fetchone()
        return bool(row[0])

    def _rest(self) -> None:
        if not self._numbers:
            self._close()

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


_keys = _Keys()


@dataclass(frozen=True, slots=True)
class IdempotentWrite:
    """One write with its key.

    Attributes:
        route: method and URL pattern; the same key may be used on two routes.
        fingerprint: SHA-256 of all that was sent, as hex.
    """

    tenant: Tenant
    caller: str
    route: str
    key: str
    fingerprint: str

    def begin(self) -> StoredResponse | None:
        """Lock the key until the transaction ends; return the answer when there is one already.

        Raises:
            RuntimeError: outside a transaction (a programming error).
            KeyInUse, KeyReused: see there.
        """
        if not connection.in_atomic_block:
            raise RuntimeError("an idempotent write begins inside the transaction that does it")
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [self._lock()])
            if not cursor.fetchone()[0]:
                raise KeyInUse
        # A statement of its own: its snapshot must be younger than the lock.
        return self.answered()

    def answered(self) -> StoredResponse | None:
        """Return the answer when there is one already; to be called by whoever has the key. Raises KeyReused."""
        row = IdempotentAnswer.objects.filter(**self._where()).first()
        if row is None:
            return None
        if row.expires_at <= timezone.now():
            row.delete()
            return None
        if row.fingerprint != self.fingerprint:
            raise KeyReused
        body = crypto.decrypt(row.body_encrypted, tenant_id=self.tenant.pk, purpose=_PURPOSE)
        return StoredResponse(row.status, body.reveal())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the key without a transaction and without a connection of Django's, for a write that waits.

        Raises:
            KeyInUse: somebody else holds it.
        """
        number = self._lock()
        if not _keys.take(number):
            raise KeyInUse
        try:
            yield
        finally:
            _keys.give_back(number)

    def store(self, answer: StoredResponse) -> None:
        """Keep the answer, in the transaction of the write."""
        body = crypto.encrypt(answer.body, tenant_id=self.tenant.pk, purpose=_PURPOSE)
        IdempotentAnswer.objects.create(
            **self._where(),
            fingerprint=self.fingerprint,
            status=answer.status,
            body_encrypted=body,
            expires_at=timezone.now() + LIFETIME,
        )

    def _where(self) -> dict[str, object]:
        return {"tenant": self.tenant, "caller": self.caller, "route": self.route, "key": self.key}

    def _lock(self) -> int:
        text = "\0".join(("idempotency", str(self.tenant.pk), self.caller, self.route, self.key))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)


def caller_of(actor: Actor) -> str:
    """Return whose keys they are: two people or API keys never meet in one."""
    if actor.api_key_id is not None:
        return f"key:{actor.api_key_id}"
    return f"user:{actor.user_id}"


def answers_expire(limit: int = 1000) -> int:
    """Forget answers whose time is over, of every tenant; returns how many."""
    with platform_scope():
        due = IdempotentAnswer.objects.filter(expires_at__lte=timezone.now())
        count, _ = IdempotentAnswer.objects.filter(
            pk__in=list(due.values_list("pk", flat=True)[:limit])
        ).delete()
    return count
