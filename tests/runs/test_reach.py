"""No address that a workspace gives its model server reaches inside: literal, by DNS, by redirect, for each client.

The corpus is that of ``tests.basics.test_net_guard``. A real listener on loopback counts connections, and must count none;
127.0.0.2 stands for a public server. What is asked for lies in the row or the client, past the form's own check.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_socket import socket_allow_hosts

from apps.collections.embedders.base import EmbeddingError
from apps.collections.index.embedding import embedder_of_setting
from basics.net_policy import NetPolicy, system_resolver
from runs import remote_models
from runs.providers import models_available, provider_for
from tenancy import model_servers
from tenancy.models import ProviderCredential
from tenancy.outgoing import model_policy
from tenancy.scope import tenant_scope
from tenancy.services import credential_set
from tests.basics.test_net_guard import NAMES, TRICKS, _Server, serving
from tests.basics.test_net_guard import resolver as tricks_resolver
from tests.cast import Cast
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import COMPATIBLE, GOOGLE, KEY, WIRES, Wire
from toolloop.errors import ConfigurationError, ProviderError
from toolloop.providers.registry import list_remote_models, make_provider

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
OUTSIDE = ip_network("127.0.0.2/32")
# By DNS: whatever a stranger's server may say about a name of its own.
ANSWERS = [
    ["127.0.0.1"],
    ["127.255.255.254"],
    ["0.0.0.0"],
    ["10.0.0.1"],
    ["172.16.0.1"],
    ["192.168.1.1"],
    ["169.254.169.254"],
    ["169.254.170.2"],
    ["100.64.0.1"],
    ["100.100.100.200"],
    ["168.63.129.16"],
    ["192.0.0.192"],
    ["198.18.0.1"],
    ["224.0.0.1"],
    ["255.255.255.255"],
    ["::1"],
    ["::"],
    ["::ffff:127.0.0.1"],
    ["::ffff:10.0.0.1"],
    ["::127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["64:ff9b:1::7f00:1"],
    ["2002:7f00:1::"],
    ["2001:0:7f00:1::"],
    ["2001:db8::1"],
    ["fe80::1"],
    ["fe80::1%lo"],
    ["fec0::1"],
    ["fc00::1"],
    ["fd00:ec2::254"],
    ["ff02::1"],
    ["2a00:1450:4001:0:0:5efe:7f00:1"],
    ["127.0.0.2", "127.0.0.1"],
    ["127.0.0.1", "127.0.0.2"],
    [],
    ["not an address"],
    ["127.0.0.2", "::1"],
    ["3fff::1"],
    ["5f00::1"],
    ["240.0.0.1"],
]


class _Listener:
    """Counts the connections to a port of loopback and answers none of them."""

    def __init__(self) -> None:
        self.hits = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.hits += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


@pytest.fixture(scope="module")
def victim() -> Iterator[_Listener]:
    listener = _Listener()
    yield listener
    listener.close()


@pytest.fixture
def outside() -> Iterator[_Server]:
    with serving("127.0.0.2") as server:
        yield server


@pytest.fixture(autouse=True)
def _world(victim: _Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow every port: only an address may stop a request. Proxies of the environment would be a way round."""
    socket_allow_hosts(["127.0.0.1", "::1", "localhost", "127.0.0.2"], allow_unix_socket=True)
    policy = NetPolicy(ports=frozenset(range(1, 1024)), allow=(OUTSIDE,), high_ports=True)
    monkeypatch.setattr(model_servers, "model_policy", lambda: policy)
    monkeypatch.setattr(model_servers, "resolver", _resolver)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{victim.port}")
    for name in ("GROUNDWORK_COMPATIBLE_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    remote_models._known.clear()


def _resolver(host: str, port: int) -> list[str]:
    number = host.partition(".")[0].removeprefix("answer")
    return (
        ANSWERS[int(number)] if number.isdigit() and host.endswith(".test") else tricks_resolver(host, port)
    )


def addresses(victim: _Listener) -> list[str]:
    """Every trick as a base URL, and names of which DNS says each of ``ANSWERS``."""
    # A line break in a URL never comes out of the database's field, and an SDK logs such a URL as an error of ours.
    literal = [trick.format(port=victim.port) for trick in TRICKS]
    return literal + [f"http://answer{n}.test:{victim.port}/v1" for n in range(len(ANSWERS))]


async def told(wire: Wire, address: str) -> str:
    """Ask a model at an address as a workspace's run would; return the error, with its class and code."""
    try:
        provider = make_provider(
            wire.name, api_key=KEY, base_url=address, http_client=model_servers.model_client()
        )
    except ConfigurationError as error:
        return f"form: {error}"
    try:
        async for _ in provider.stream(wire.request(timeout_s=20.0)):
            pass
    except (ConfigurationError, ProviderError) as error:
        return f"{type(error).__name__} {getattr(error, 'code', '')}: {error}"
    finally:
        await provider.aclose()
    return "reached"


@every_wire
async def test_no_base_url_reaches_inside(wire: Wire, victim: _Listener) -> None:
    # Each client of Google's SDK takes a tenth of a second to make.
    tricks = addresses(victim)[: len(TRICKS)][:: 3 if wire is GOOGLE else 1]
    names = addresses(victim)[len(TRICKS) :]
    texts = await asyncio.gather(*(told(wire, address) for address in (*tricks, *names)))
    assert victim.hits == 0
    assert "reached" not in texts
    # What has the form of an address fails in one way, whatever it led to.
    by_name = texts[len(tricks) :]
    assert len(set(by_name)) == 1, set(by_name)


@every_wire
async def test_no_redirect_reaches_inside(wire: Wire, victim: _Listener, outside: _Server) -> None:
    some = addresses(victim)[:: 9 if wire is GOOGLE else 2]  # none is followed, whatever it says
    targets = [t.replace("\r", "").replace("\n", "").strip() for t in some]
    outside.answer = lambda handler: _sent_on(handler, targets)
    outside.server.RequestHandlerClass.do_POST = _post  # type: ignore[attr-defined]
    few = asyncio.Semaphore(4)  # a server of the standard library queues no more than five

    async def one(number: int) -> str:
        async with few:
            return await told(wire, f"{outside.url}/{number}/v1")

    texts = await asyncio.gather(*(one(number) for number in range(len(targets))))
    assert victim.hits == 0
    assert "reached" not in texts
    assert len(outside.hits) == len(targets)  # each was asked, and sent us on


@every_wire
async def test_what_is_no_model_server_fails_in_one_text(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even in networks that the operator has opened: closed, wrong TLS, no HTTP, no such name, not allowed."""
    with socket.socket() as closed, socket.create_server(("127.0.0.2", 0)) as odd:
        closed.bind(("127.0.0.2", 0))

        def answer() -> None:
            while True:
                try:
                    connection, _ = odd.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(10)
                    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        port = odd.getsockname()[1]
        try:
            found = [
                await told(wire, address)
                for address in (
                    f"http://127.0.0.2:{closed.getsockname()[1]}/v1",
                    f"http://127.0.0.2:{port}/v1",
                    f"https://127.0.0.2:{port}/v1",
                    "http://nobody-knows.test/v1",
                    "http://inside.test/v1",
                    "http://10.0.0.1/v1",
                    "http://metadata.test/v1",
                )
            ]
        finally:
            odd.shutdown(socket.SHUT_RDWR)
            odd.close()
            thread.join(10)
    assert len(set(found)) == 1, found
    assert "10.0.0.1" not in found[0]
    assert model_servers.UNREACHED in found[0]


@every_wire
async def test_name_that_changes_its_answer_is_called_where_it_was_judged(
    wire: Wire, victim: _Listener, outside: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    monkeypatch.setattr(model_servers, "resolver", rebinding)
    outside.answer = (404, {"Content-Type": "application/json"}, b'{"error": {"message": "gone fishing"}}')
    outside.server.RequestHandlerClass.do_POST = _post  # type: ignore[attr-defined]
    assert "fishing" in await told(wire, f"http://rebind.test:{outside.port}/v1")
    assert len(outside.hits) == 1
    await told(wire, f"http://rebind.test:{victim.port}/v1")
    assert victim.hits == 0


async def test_list_of_models_is_asked_for_nowhere_inside(victim: _Listener) -> None:
    async def listed(address: str) -> str:
        async with model_servers.model_client() as client:
            try:
                await list_remote_models(address, KEY, client)
            except (ConfigurationError, ProviderError) as error:
                return str(error)
        return "reached"

    texts = await asyncio.gather(*(listed(address) for address in addresses(victim)))
    assert victim.hits == 0
    assert "reached" not in texts


def lend(cast: Cast, provider: str, base_url: str) -> None:
    """Store a credential, and the address past the form's check, as before there was one."""
    credential_set(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        provider=provider,
        secret=KEY,
        base_url="https://llm.example.org/v1",
    )
    with tenant_scope(cast.tenant.pk):
        ProviderCredential.objects.filter(tenant=cast.tenant, provider=provider).update(base_url=base_url)


@pytest.mark.django_db
@every_wire
def test_stored_address_of_a_workspace_is_called_through_the_guard(
    wire: Wire, cast: Cast, victim: _Listener, outside: _Server
) -> None:
    outside.answer = (200, {"Content-Type": "text/event-stream"}, wire.encode(Script(text=["Hello."])))

    async def asked() -> str:
        provider = made[0]
        try:
            parts = [e async for e in provider.stream(wire.request(profile=None, tools=()))]
        except ProviderError as error:
            return str(error)
        finally:
            await provider.aclose()
        return parts[-1].turn.text  # type: ignore[union-attr]

    outside.server.RequestHandlerClass.do_POST = _post  # type: ignore[attr-defined]
    for address, expected in ((f"http://inside.test:{victim.port}/v1", ""), (f"{outside.url}/v1", "Hello.")):
        lend(cast, wire.name, address)
        with tenant_scope(cast.tenant.pk):
            made = [provider_for(cast.tenant, f"{wire.name}/{wire.model}")]
        text = asyncio.run(asked())
        assert text == expected if expected else model_servers.UNREACHED in text
    assert victim.hits == 0


def _sent_on(handler: Any, targets: list[str]) -> tuple[int, dict[str, str], bytes]:
    number = int(handler.path.split("/")[1])
    location = targets[number].encode().decode("latin-1")
    return (307 if number % 2 else 302), {"Location": location}, b""


def _post(handler: Any) -> None:
    handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    handler.do_GET()


@pytest.mark.django_db
def test_models_of_a_server_inside_are_not_listed(cast: Cast, victim: _Listener) -> None:
    lend(cast, "compatible", f"http://inside.test:{victim.port}/v1")
    with tenant_scope(cast.tenant.pk):
        assert [info.id for info in models_available(cast.tenant)] == ["extractive"]
    assert victim.hits == 0


@pytest.mark.django_db
@pytest.mark.parametrize("setting", ["openai/text-embedding-3-small@512", "google/gemini-embedding-001@768"])
def test_no_embedder_reaches_inside(
    setting: str, cast: Cast, victim: _Listener, outside: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.collections.embedders.remote.call_with_retry", lambda ask, *, deadline_s: ask())
    outside.server.RequestHandlerClass.do_POST = _post  # type: ignore[attr-defined]
    targets = addresses(victim)
    targets = [t.replace("\r", "").replace("\n", "").strip() for t in targets]
    outside.answer = lambda handler: _sent_on(handler, targets)
    names = [t for t in targets if "answer" in t]
    for address in (*names[::5], *targets[:60:8], f"{outside.url}/0/v1", f"{outside.url}/70/v1"):
        lend(cast, setting.partition("/")[0], address)
        with pytest.raises((EmbeddingError, ValueError)):
            embedder_of_setting(setting, tenant=cast.tenant).embed_query("what is inside?")
    assert victim.hits == 0
    assert len(outside.hits) == 2


def test_operator_opens_networks_but_never_where_clouds_keep_keys(settings: Any) -> None:
    from ipaddress import ip_address

    from basics.net_policy import address_refusal

    inside = ["10.1.2.3", "127.0.0.1", "192.168.0.9", "172.20.0.2", "100.64.0.9", "fd12::1", "::1"]
    never = ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "168.63.129.16", "fe80::1"]
    settings.ALLOW_PRIVATE_MODEL_URLS, settings.FETCH_NETWORKS = False, ["10.1.0.0/16"]
    assert [a for a in inside if not address_refusal(ip_address(a), model_policy())] == ["10.1.2.3"]
    settings.ALLOW_PRIVATE_MODEL_URLS = True
    assert [a for a in inside if address_refusal(ip_address(a), model_policy())] == []
    assert [a for a in never if not address_refusal(ip_address(a), model_policy())] == []


def test_own_server_of_the_operator_is_called_as_before(
    victim: _Listener, outside: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On loopback, without being opened: it is the operator's word, and no workspace's."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    outside.answer = (200, {"Content-Type": "application/json"}, b'{"data": [{"id": "llama3"}]}')
    server = remote_models.Server(0, "compatible", f"{outside.url}/v1", "")
    monkeypatch.setattr(model_servers, "model_policy", NetPolicy)
    assert remote_models.names([server]) == ["compatible/llama3"]
    theirs = remote_models.Server(7, "compatible", f"{outside.url}/v1", "")
    assert remote_models.names([theirs]) == []


def test_corpus_is_large_enough() -> None:
    assert len(TRICKS) + len(ANSWERS) >= 100
    assert len(ANSWERS) >= 40
    assert NAMES
    assert system_resolver("127.1", 80) == ["127.0.0.1"]
    assert COMPATIBLE in WIRES
