"""HTTP clients for model servers that a workspace has named: through the guard, and silent about what they did not reach.

The server's own answers are passed on, as people need them. Whatever happened before the head of an answer came, a refused
address, a closed or silent port, wrong TLS, something that is no HTTP, is one error with one text (``UNREACHED``), and one
that is tried again like any other: whoever names addresses learns nothing about the network from how they fail.
Redirects are not followed, proxies of the environment are not used (a proxy would look up the name itself).
"""

from __future__ import annotations

import functools
import ssl

import httpx2
import structlog

from basics import net_policy
from basics.net_guard import GuardedTransport
from basics.net_guard_async import AsyncGuardedTransport
from basics.net_policy import AddressRefused
from tenancy.outgoing import model_policy

log = structlog.get_logger(__name__)

UNREACHED = "no model server answered at its address; check address, port and certificate"
SECONDS = 120.0
"""What one request of the blocking client may take in all."""
_FAILURES = (AddressRefused, httpx2.TransportError, OSError)


def model_client(*, verify: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """Return a client for the adapters of one run.

    Args:
        verify: checks the certificates of servers; the system's by default.
    """
    return httpx2.AsyncClient(
        transport=_ModelTransport(verify=verify), trust_env=False, follow_redirects=False
    )


def model_client_blocking() -> httpx2.Client:
    """Return a client for code that blocks, embedders above all; each request has ``SECONDS`` from its beginning."""
    return httpx2.Client(transport=_BlockingModelTransport(), trust_env=False, follow_redirects=False)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates of all authorities takes 30 to 50 ms: once."""
    return httpx2.create_ssl_context()


def resolver(host: str, port: int) -> list[str]:
    """Give the addresses of a name; tests put their own here."""
    return list(net_policy.system_resolver(host, port))


class _ModelTransport(httpx2.AsyncBaseTransport):
    def __init__(self, *, verify: ssl.SSLContext | None) -> None:
        # A dataset's driver has a hundred calls under way: each connection that is closed between two costs another.
        self._guarded = AsyncGuardedTransport(
            model_policy(),
            resolver=lambda host, port: resolver(host, port),
            verify=verify or _tls(),
            keepalive=100,
            connections=1000,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._guarded.handle_async_request(request)
        except _FAILURES as error:
            raise _unreached(request, error) from None

    async def aclose(self) -> None:
        await self._guarded.aclose()


class _BlockingModelTransport(httpx2.BaseTransport):
    def __init__(self) -> None:
        self._policy = model_policy()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        # One for each request, as its deadline is absolute; it keeps no connection.
        guarded = GuardedTransport(self._policy, seconds=SECONDS, resolver=resolver, verify=_tls())
        try:
            return guarded.handle_request(request)
        except _FAILURES as error:
            raise _unreached(request, error) from None


def _unreached(request: httpx2.Request, error: Exception) -> httpx2.ConnectError:
    log.warning(
        "model_server_unreached", host=request.url.host, error=type(error).__name__, said=str(error)[:300]
    )
    return httpx2.ConnectError(UNREACHED, request=request)
