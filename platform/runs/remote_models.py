"""Which models compatible servers say they have: asked all at once, at most once a minute each, remembered."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from tenancy.database.waiting import connections_let_go, in_transaction
from tenancy.model_servers import model_client
from toolloop.errors import ToolloopError
from toolloop.providers.registry import list_remote_models

log = structlog.get_logger(__name__)

TTL_S = 60.0
TIMEOUT_S = 1.5
MAX_REMEMBERED = 1_000
_PATIENCE_S = 2 * TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Server:
    """A server to ask.

    Attributes:
        tenant_id: whose it is, 0 for the operator's; what one tenant's key may see is nobody else's.
        prefix: what goes before the names it answers with.
        base_url, api_key: as for ``list_remote_models``.
    """

    tenant_id: int
    prefix: str
    base_url: str
    api_key: str

    @property
    def key(self) -> tuple[int, str, str]:
        """What its answer is remembered under; the API key only as a hash."""
        return self.tenant_id, self.base_url, hashlib.sha256(self.api_key.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Answer:
    names: tuple[str, ...]
    asked_at: float


_known: dict[tuple[int, str, str], _Answer] = {}
_lock = threading.Lock()
# Servers that are asked for the first time: who comes meanwhile has no old answer to take, and waits for this one.
_first: dict[tuple[int, str, str], threading.Event] = {}


def names(servers: Sequence[Server]) -> list[str]:
    """Return what the servers offer, with their prefixes; one that is away keeps its last answer.

    Inside a transaction, whose connection cannot be given back, nobody waits for servers that have answered before: they
    are asked all the same, and the next caller gets what they say.
    """
    now = time.monotonic()
    due: list[Server] = []
    coming: list[threading.Event] = []
    is_new = False
    with _lock:
        for server in servers:
            last = _known.get(server.key)
            if server.key in _first:
                coming.append(_first[server.key])
            elif last is None or now - last.asked_at >= TTL_S:
                due.append(server)
                if last is None:
                    is_new, _first[server.key] = True, threading.Event()
                # Whoever comes meanwhile gets the old answer instead of waiting too.
                _known[server.key] = _Answer(last.names if last else (), now)
        while len(_known) > MAX_REMEMBERED:
            del _known[next(iter(_known))]
    if due:
        _ask(due, now, waits=is_new or not in_transaction())
    if coming:
        connections_let_go()
        for event in coming:
            event.wait(_PATIENCE_S)
    with _lock:
        return [
            f"{server.prefix}/{name}"
            for server in servers
            if (answered := _known.get(server.key)) is not None
            for name in answered.names
        ]


async def _list(server: Server) -> list[str]:
    if not server.tenant_id:
        return await list_remote_models(server.base_url, server.api_key, timeout_s=TIMEOUT_S)
    async with model_client() as client:
        return await list_remote_models(
            server.base_url, server.api_key, http_client=client, timeout_s=TIMEOUT_S
        )


def _ask(servers: Sequence[Server], now: float, *, waits: bool) -> None:
    """Ask from a thread of its own, for the caller may run inside an event loop already; remember the answers."""

    async def ask() -> list[list[str] | BaseException]:
        return await asyncio.gather(*(_list(server) for server in servers), return_exceptions=True)

    failed: list[BaseException] = []

    def work() -> None:
        try:
            answered()
        finally:
            with _lock:
                for event in (_first.pop(server.key, None) for server in servers):
                    if event is not None:
                        event.set()

    def answered() -> None:
        answers = asyncio.run(ask())  # noqa: TID251 - a thread that never sees the database
        for server, answer in zip(servers, answers, strict=True):
            if isinstance(answer, ToolloopError):
                log.warning("models_not_listed", base_url=server.base_url, error=str(answer))
            elif isinstance(answer, BaseException):
                log.error("models_not_listed", base_url=server.base_url, exc_info=answer)
                failed.append(answer)
            else:
                with _lock:
                    _known[server.key] = _Answer(tuple(answer), now)

    thread = threading.Thread(target=work, name="list-models", daemon=True)
    if not waits:
        thread.start()
        return
    connections_let_go()
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
