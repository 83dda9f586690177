"""Fixtures of every test: the embedded database, the cast, and a network that refuses."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from pytest_socket import socket_allow_hosts

from basics.metrics import instruments
from tests import databases, nursery, one_tenant, processes, rewriting, spread
from tests.cast import Cast, make_cast
from tests.fastness import is_of_rules

ROOT = Path(__file__).resolve().parent.parent

# Keep what is compiled, whatever the machine prefers: else each of the processes that a run starts, by the hundred,
# compiles the whole product again (a second each), and each of pytest's own compiles all tests (15 s).
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_ADDRESSES: dict[str, set[str]] = {}
"""Of localhost, asked for once."""

# The same examples in every run, and no clock: a slow machine is no failure.
hypothesis.settings.register_profile(
    "groundwork", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("groundwork")
# Hypothesis also draws the constants it finds in our loaded modules: these depend on which tests ran before in the same
# process, and reading them takes each process seconds.
providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    """Start the embedded database once, in the process that hands out the work; workers inherit its URL."""
    from django.conf import settings

    # Every test client loads the middleware anew, and WhiteNoise would walk all static files each time: 0.1 s a test.
    settings.WHITENOISE_AUTOREFRESH = True
    _flush_cheaply()
    one_tenant.watch()
    if not hasattr(config, "workerinput"):
        _end_in_order(config)
        _client_write()
    if os.environ.get("DATABASE_URL") or hasattr(config, "workerinput"):
        return
    from config.embedded import EmbeddedPostgres

    # Nothing here has to outlive a crash of the machine, and each commit would wait for the disk: 32,000 times in
    # tests/tools/toolset/test_enforcement.py alone.
    server = EmbeddedPostgres(Path(os.environ["GROUNDWORK_DATA_DIR"]), durable=False)
    server.start()
    databases.server_prepare(server.url, server.superuser_url)
    os.environ["DATABASE_URL"] = server.url
    config.add_cleanup(lambda: (server.stop(), None)[1])


def _client_write() -> None:
    """Write the Python client where the schema is newer: it is in no commit, and its tests import it."""
    home = ROOT / "clients" / "python"
    sources = (ROOT / "docs" / "openapi.yaml", home / "generate.py")
    made = home / "src" / "groundwork_client" / "client.py"  # the last one that is written
    if not made.exists() or made.stat().st_mtime < max(s.stat().st_mtime for s in sources):
        subprocess.run([sys.executable, home / "generate.py"], check=True)


def _end_in_order(config: pytest.Config) -> None:
    """Let SIGTERM end a run as Ctrl-C does, and leave no process of the run behind, however it ends."""
    os.environ[processes.RUN] = str(os.getpid())

    def end_the_rest() -> None:
        for words in processes.end_the_rest(os.getpid()):
            sys.stderr.write(f"Left behind by a test, ended now: {words}\n")

    config.add_cleanup(end_the_rest)

    def interrupt(*_: Any) -> None:
        # make and timeout may both pass the signal on: the second one must not cut the clearing up short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt("SIGTERM")

    signal.signal(signal.SIGTERM, interrupt)


def _flush_cheaply() -> None:
    from django.test import TestCase, TransactionTestCase

    from tests.sweeping import after_commits, constraints_are_to_check

    TransactionTestCase._fixture_teardown = after_commits  # type: ignore[attr-defined]
    TransactionTestCase._should_reload_connections = lambda *_: False  # type: ignore[attr-defined]
    TestCase._should_check_constraints = staticmethod(constraints_are_to_check)  # type: ignore[attr-defined]


def pytest_sessionfinish() -> None:
    """End what the product's processes were forked from."""
    nursery.end_all()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without looking for garbage: it takes a third of the time, and what is collected stays to the end."""
    gc.disable()
    try:
        rewriting.rewrite_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # requests leave little garbage, and looking for it takes its time
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark what starts servers and what is of the product's rules alone; then order all for ``tests.spread``."""
    is_rules_run = "rules" in config.option.markexpr  # else each process would read all modules in vain
    for item in items:
        folder = item.path.parent.relative_to(ROOT).as_posix()
        if folder in spread.SERVED:
            item.add_marker(pytest.mark.servers)
        if folder == spread.BROWSER:
            item.add_marker(pytest.mark.browser)
        if is_rules_run and is_of_rules(item):
            item.add_marker(pytest.mark.rules)
    yield
    if hasattr(config, "workerinput"):
        spread.order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> spread.Spread | None:
    """Spread modules in our order; other ways to spread tests stay as xdist has them."""
    return spread.Spread(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def django_db_setup(
    request: pytest.FixtureRequest, django_test_environment: None, django_db_blocker: Any
) -> Iterator[None]:
    """Give this process a database on the server that ``pytest_configure`` started (settings were read before it)."""
    from django.db import connections

    from config import env

    chosen = env.database_settings(os.environ["DATABASE_URL"], pool=False)
    settings = connections["default"].settings_dict
    settings.update({k: chosen[k] for k in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})
    worker = getattr(request.config, "workerinput", {}).get("workerid", "")
    with django_db_blocker.unblock(), databases.cloned(worker), django_db_blocker.block():
        yield


@pytest.fixture(scope="module", autouse=True)
def _begin_empty(django_db_blocker: Any) -> None:
    """Let each module begin with an empty database: a server of the one before may have written after its last test."""
    if not databases.is_made():
        return
    from tests import sweeping

    with django_db_blocker.unblock():
        left = sweeping.rows_left()
        if left:
            warnings.warn(f"rows left by an earlier module, deleted now: {left}", stacklevel=1)
            sweeping.sweep()


@pytest.fixture(scope="module", autouse=True)
def _begin_uncounted() -> None:
    """Let each module begin with no series of requests, jobs and models but its own.

    A process that has asked for every page counts thousands: reading ``/metrics`` then takes half a second, and
    ``tests/deploy/test_faults.py`` reads it 70 times.
    """
    for instrument in instruments():
        if instrument.labels and instrument.is_made:
            instrument.family().clear()
            instrument._children.clear()


@pytest.fixture(autouse=True)
def _only_loopback() -> Any:
    """Refuse every address but loopback: a test that reaches for the network fails."""
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True, resolution_cache=_ADDRESSES)
    yield
    from pytest_socket import _remove_restrictions

    _remove_restrictions()


@pytest.fixture(autouse=True)
def _no_request_waits_with_a_connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fail a test in which a request calls a server while it holds a database connection: a new route that forgot to let go."""
    from tenancy.database.waiting import thread_is_holding

    found: list[str] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> Any:
        if thread_is_holding():
            found.append(f"{address}\n" + "".join(traceback.format_stack(limit=25)))
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    yield
    assert found == [], found[0]


@pytest.fixture
def cast(db: None) -> Cast:
    return make_cast()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real documents; a test that needs it is skipped where it is absent."""
    path = Path(os.environ.get("GROUNDWORK_SHARED_DATA") or ROOT.parent / "shared" / "data")
    if not path.is_dir():
        pytest.skip("real documents not found: set GROUNDWORK_SHARED_DATA to their folder")
    return path
