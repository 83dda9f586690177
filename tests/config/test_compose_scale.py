"""More workers and a pooler by compose.yaml: what it names is run here with a real PgBouncer, since Docker isn't here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
import yaml

from basics.processes import die_with_parent
from config import env
from tenancy.database.direct import is_shared
from tests.patience import PATIENCE_S
from tests.pgbouncer import needed
from tests.servers import database_url, free_port, wait_for

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
# The Compose Specification, "Interpolation": ${NAME}, ${NAME:-default}, ${NAME:+replacement}, ${NAME:?error}.
INNERMOST = re.compile(r"\$\{(\w+)(?:(:[-+?])([^${}]*))?\}")


def interpolated(text: str, given: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, how, rest = found[1], found[2], found[3] or ""
        is_set = bool(given.get(name))
        if how == ":?":
            assert is_set, rest
        if how == ":+":
            return rest if is_set else ""
        return given[name] if is_set else (rest if how == ":-" else "")

    while (after := INNERMOST.sub(value, text)) != text:
        text = after
    assert "${" not in text
    return text


def urls(**given: str) -> tuple[str, str]:
    shared = COMPOSE["x-groundwork"]["environment"]
    given = {"POSTGRES_PASSWORD": "pw", **given}
    return interpolated(shared["DATABASE_URL"], given), interpolated(shared["GROUNDWORK_LISTEN_URL"], given)


def test_a_pooler_is_named_in_one_place_and_sessions_go_past_it() -> None:
    assert urls() == ("postgresql://groundwork:pw@db:5432/groundwork", "")
    pooled, direct = urls(POSTGRES_POOLER="pgbouncer:6432")
    assert pooled == "postgresql://groundwork:pw@pgbouncer:6432/groundwork"
    assert direct == "postgresql://groundwork:pw@db:5432/groundwork"
    for url in (pooled, direct):
        assert env.database_settings(url, pool=False)["NAME"] == "groundwork"
    assert urls(GROUNDWORK_LISTEN_URL="postgresql://else/where")[1] == "postgresql://else/where"


def test_a_worker_can_be_there_several_times() -> None:
    """A name or a published port can be had once."""
    worker = COMPOSE["services"]["worker"]
    assert not {"container_name", "ports", "hostname"} & set(worker)
    assert not {"container_name", "ports", "hostname"} & set(COMPOSE["x-groundwork"])


def test_the_pooler_comes_only_when_it_is_asked_for() -> None:
    services = COMPOSE["services"]
    profiles = {name: service["profiles"] for name, service in services.items() if service.get("profiles")}
    assert profiles == {"pgbouncer": ["pgbouncer"], "files": ["files"], "bucket": ["files"]}
    optional = {"condition": "service_healthy", "required": False}
    for name in ("web", "worker", "migrate"):
        waits = services[name].get("depends_on", COMPOSE["x-groundwork"]["depends_on"])
        assert waits["pgbouncer"] == optional, name
    sources = {c["source"] for c in services["pgbouncer"]["configs"]}
    assert sources == set(COMPOSE["configs"])
    made = services["pgbouncer"]["build"]["dockerfile_inline"]
    assert made.index("USER postgres") < made.index("CMD")
    port = re.findall(r"listen_port = (\d+)", COMPOSE["configs"]["pgbouncer.ini"]["content"])
    assert f"/dev/tcp/127.0.0.1/{port[0]}" in services["pgbouncer"]["healthcheck"]["test"][-1]


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_its_settings_are_those_of_a_real_pooler(tmp_path: Path) -> None:
    program, port, to = needed(), free_port(), urlsplit(database_url())
    password = unquote(to.password or "")
    config = COMPOSE["configs"]["pgbouncer.ini"]["content"]
    # What differs on this machine: addresses, the name of the database, and the folder.
    for ours, here in (
        ("groundwork = host=db port=5432", f"{to.path[1:]} = host={to.hostname} port={to.port}"),
        ("listen_addr = 0.0.0.0", "listen_addr = 127.0.0.1"),
        ("listen_port = 6432", f"listen_port = {port}"),
        ("/etc/pgbouncer/userlist.txt", str(tmp_path / "userlist.txt")),
    ):
        assert config.count(ours) == 1
        config = config.replace(ours, here)
    users = interpolated(COMPOSE["configs"]["userlist.txt"]["content"], {"POSTGRES_PASSWORD": password})
    for name, text in (
        ("pgbouncer.ini", config),
        ("userlist.txt", users.replace("groundwork", str(to.username))),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o644)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [program, *user, str(tmp_path / "pgbouncer.ini")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
    )
    given: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": port,
        "user": to.username,
        "dbname": to.path[1:],
        "connect_timeout": 5,
    }

    def answers() -> bool:
        assert process.poll() is None, "PgBouncer ended"
        try:
            psycopg.connect(**given, password=password).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        wait_for(answers, "PgBouncer")
        assert is_shared({**given, "password": password})
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**given, password="guessed")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
