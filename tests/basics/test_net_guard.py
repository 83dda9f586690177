"""No trick reaches a blocked address: a real server listens on loopback, and must hear nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from typing import Any

import httpx2
import pytest
from pytest_socket import socket_allow_hosts

from apps.collections.ingestion.sources.base import Entry, Problem, SourceLimits
from apps.collections.ingestion.sources.web import web_entries
from basics.net_guard import GuardedTransport
from basics.net_policy import AddressRefused, NetPolicy, address_refusal, system_resolver, url_check
from tests.walked import each

BLOCKED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.254",
    "127.0.0.1",
    "127.1.2.3",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "ff05::2",
]
PUBLIC_ADDRESSES = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::1"]
# Written so that the address is loopback, or that some parser takes another part of it for the host.
TRICKS = [
    "http://127.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7f.1:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0.0x1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.000.000.001:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://127.0.0.1:{port}#@example.org/",
    "http://example.org@127.0.0.1:{port}/",
    "http://example.org:80@127.0.0.1:{port}/",
    "http://user:pass@localhost:{port}/",
    "http://:@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.org/",
    "http://example.org\\@127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "http://127.0.0.1:{port}?@example.org/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%2f:{port}/",
    "http://127.0.0.1%00.example.org:{port}/",
    "http://127。0。0。1:{port}/",
    "http://１２７.0.0.1:{port}/",
    "http://①②⑦.0.0.1:{port}/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
    "http://loc\u00adalhost:{port}/",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\r\nHost: x:{port}/",
    " http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "file:///etc/passwd",
    "dict://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "data:text/html,x",
    "jar:http://127.0.0.1:{port}!/",
    "https://127.0.0.1:{port}/",
    "http://inside.test:{port}/",
    "http://mixed.test:{port}/",
    "http://mapped.test:{port}/",
    "http://nat64.test:{port}/",
    "http://metadata.test/latest/meta-data/",
    "http://empty.test:{port}/",
    "http://junk.test:{port}/",
]
NAMES = {
    "inside.test": ["127.0.0.1"],
    "mixed.test": ["8.8.8.8", "127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "metadata.test": ["169.254.169.254"],
    "empty.test": [],
}


@pytest.fixture(autouse=True)
def _outside_allowed() -> None:
    """Let pytest-socket through to the address that stands for a public server here."""
    socket_allow_hosts(["127.0.0.1", "::1", "localhost", "127.0.0.2"], allow_unix_socket=True)


def resolver(host: str, port: int) -> list[str]:
    """Answer for the names of the tests; literals of any form as the system reads them, nothing else."""
    if host in NAMES:
        return NAMES[host]
    if host == "junk.test":
        raise OSError("no such name")
    is_literal = not any(sign.isalpha() and sign not in "xabcdef" for sign in host.lower())
    if is_literal or host.lower().rstrip(".") == "localhost":
        return system_resolver(host, port)
    raise OSError(f"no such name: {host}")


class _Server:
    def __init__(self, host: str) -> None:
        self.hits: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Any = (200, {"Content-Type": "text/html"}, b"<h1>Secret</h1>")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.hits.append(self.path)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                answer = outer.answer(self) if callable(outer.answer) else outer.answer
                if answer is None:
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((host, 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://{host}:{self.port}"


@contextmanager
def serving(host: str) -> Iterator[_Server]:
    """Serve on an address of loopback."""
    try:
        server = _Server(host)
    except OSError:
        pytest.skip(f"this system has no address {host}")
    thread = threading.Thread(target=server.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def victim() -> Iterator[_Server]:
    """Stands on loopback, which may not be called."""
    with serving("127.0.0.1") as server:
        yield server


@pytest.fixture
def outside() -> Iterator[_Server]:
    """Stands for a public server: its address is allowed."""
    with serving("127.0.0.2") as server:
        yield server


def fetch(url: str, policy: NetPolicy, **options: Any) -> Any:
    """Fetch one page; returns its entry or its problem."""
    items = list(
        web_entries(
            [url],
            limits=SourceLimits(),
            policy=policy,
            resolver=options.pop("resolver", resolver),
            seconds=options.pop("seconds", 5),
        )
    )
    assert len(items) == 1
    return items[0]


@each("text", BLOCKED)
def test_address_is_refused(text: str) -> None:
    assert address_refusal(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES)
def test_public_address_is_allowed(text: str) -> None:
    assert address_refusal(ip_address(text)) == ""


@each("trick", TRICKS)
def test_trick_reaches_nothing(trick: str, victim: _Server) -> None:
    policy = NetPolicy(ports=frozenset({victim.port, 80, 443}))
    found = fetch(trick.format(port=victim.port), policy)
    assert isinstance(found, Problem)
    assert found.message
    assert victim.hits == []


@each("trick", TRICKS)
def test_redirect_to_a_trick_reaches_nothing(trick: str, victim: _Server, outside: _Server) -> None:
    target = trick.format(port=victim.port).replace("\r", "").replace("\n", "").strip()
    is_relative = "://" not in target and not target.startswith(("//", "http:", "data:", "jar:"))
    outside.answer = lambda handler: (
        (302, {"Location": target.encode("utf-8").decode("latin-1")}, b"")
        if handler.path == "/start"
        else (404, {}, b"")
    )
    policy = NetPolicy(ports=frozenset({victim.port, 80, 443}), allow=(ip_network("127.0.0.2/32"),))
    found = fetch(f"{outside.url}/start", policy)
    assert isinstance(found, Problem) or is_relative
    assert victim.hits == []


def test_name_that_changes_its_answer_is_called_at_the_judged_address(
    victim: _Server, outside: _Server
) -> None:
    """The second look of a DNS server with a short memory would be loopback."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.2"] if len(asked) == 1 else ["127.0.0.1"]

    policy = NetPolicy(ports=frozenset({outside.port}), allow=(ip_network("127.0.0.2/32"),))
    found = fetch(f"http://rebind.test:{outside.port}/", policy, resolver=rebinding)
    assert isinstance(found, Entry)
    assert len(asked) == 1
    assert victim.hits == []
    found = fetch(f"http://rebind.test:{victim.port}/", policy, resolver=rebinding)
    assert isinstance(found, Problem)
    assert victim.hits == []


@pytest.mark.parametrize("port", [22, 25, 6379, 5432, 11211])
def test_port_of_another_service_is_refused(port: int) -> None:
    with pytest.raises(AddressRefused, match="Port"):
        url_check(f"http://example.org:{port}/")


def test_connection_to_a_socket_of_this_machine_is_refused() -> None:
    from basics.net_guard import GuardedBackend
    from basics.net_policy import PUBLIC

    with pytest.raises(AddressRefused):
        GuardedBackend(PUBLIC, resolver, 1e12).connect_unix_socket("/var/run/docker.sock")


def test_proxies_of_the_environment_are_not_used(
    victim: _Server, outside: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, victim.url)
    policy = NetPolicy(ports=frozenset(), allow=(ip_network("127.0.0.2/32"),))
    assert isinstance(fetch(f"{outside.url}/", policy), Entry)
    assert victim.hits == []


def test_server_that_drips_is_cut_off_at_the_deadline() -> None:
    listener = socket.create_server(("127.0.0.2", 0))
    listener.settimeout(5)
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not stop.wait(0.1):
                try:
                    connection.sendall(b"X-A: b\r\n")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    policy = NetPolicy(allow=(ip_network("127.0.0.2/32"),))
    try:
        transport = GuardedTransport(policy, seconds=0.7)
        request = httpx2.Request("GET", f"http://127.0.0.2:{listener.getsockname()[1]}/")
        with transport, pytest.raises(httpx2.TransportError, match=r"too long|time"):
            transport.handle_request(request)
    finally:
        stop.set()
        thread.join(6)
        listener.close()


def test_corpus_is_large_enough() -> None:
    assert len(TRICKS) >= 60
    assert len(BLOCKED) >= 50
