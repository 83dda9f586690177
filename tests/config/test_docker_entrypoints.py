"""Dockerfile and compose.yaml cannot be built here; what they name must exist and run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from config import env, healthcheck, variables
from jobs.health import ProbeServer, WorkerHealth

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())


def instructions(name: str) -> list[str]:
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(None, 1)[1] for line in joined.splitlines() if line.startswith(name + " ")]


def image_environment() -> dict[str, str]:
    """The image's environment, with its paths moved to this checkout."""
    words = " ".join(instructions("ENV")).split()
    values = dict(word.split("=", 1) for word in words if "=" in word and "$PATH" not in word)
    return {
        name: value.replace("/app", str(ROOT))
        for name, value in values.items()
        if name.startswith(("PYTHON", "DJANGO", "GROUNDWORK"))
    }


def run_in_image(command: list[str], data_dir: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a command the way the image would: its environment, production settings, this interpreter."""
    environment = {
        "PATH": os.environ["PATH"],
        **image_environment(),
        "GROUNDWORK_DATA_DIR": str(data_dir),
        "GROUNDWORK_SECRET_KEY": "x" * 60,
        **extra,
    }
    assert command[0] == "python"
    return subprocess.run(
        [sys.executable, *command[1:]],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def commands() -> dict[str, list[str]]:
    found = {
        name: service["command"]
        for name, service in COMPOSE["services"].items()
        if isinstance(service.get("command"), list)
    }
    return {**found, "web": json.loads(instructions("CMD")[-1])}


def test_every_service_of_compose_has_a_command_that_is_known() -> None:
    assert set(COMPOSE["services"]) == {"db", "migrate", "web", "worker", "pgbouncer", "files", "bucket"}
    assert set(commands()) == {"migrate", "web", "worker", "files", "bucket"}


@pytest.mark.parametrize("name", ["migrate", "worker", "bucket"])
def test_management_command_parses_when_named_by_compose(name: str) -> None:
    command = commands()[name]
    assert command[:2] == ["python", "manage.py"]
    found = load_command_class(get_commands()[command[2]], command[2])
    found.create_parser("manage.py", command[2]).parse_args(command[3:])


def test_web_application_loads_with_the_image_settings(tmp_path: Path) -> None:
    command = commands()["web"]
    assert command[:4] == ["python", "-m", "uvicorn", "config.asgi:application"]
    result = run_in_image([*command, "--version"], tmp_path)
    assert result.returncode == 0, result.stderr
    code = """
import config.asgi, contextvars, django.conf as c
print(c.settings.SETTINGS_MODULE, c.settings.DEBUG, len(contextvars.copy_context()))
"""
    result = run_in_image(["python", "-c", code], tmp_path)
    module, debug, variables = result.stdout.split()
    assert (module, debug) == ("config.settings.prod", "False"), result.stderr
    # Every way between a coroutine and a thread looks at each: the resolvers of all addresses would leave 150.
    assert int(variables) < 20


def test_image_refuses_to_run_when_secret_key_is_missing(tmp_path: Path) -> None:
    result = run_in_image(["python", "manage.py", "check"], tmp_path, GROUNDWORK_SECRET_KEY="")
    assert result.returncode != 0
    assert "GROUNDWORK_SECRET_KEY must be set" in result.stderr


def test_health_check_of_the_image_tells_up_from_down(tmp_path: Path, unused_tcp_port: int) -> None:
    command = json.loads(instructions("HEALTHCHECK")[0].split("CMD ", 1)[1])
    assert command == ["python", "-m", "config.healthcheck"]
    assert healthcheck.main(unused_tcp_port) == 1  # nothing listens
    code = (
        "import http.server, threading, sys\nfrom config import healthcheck\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        good = self.path == sys.argv[1] and self.headers['Host'] == 'example.org'\n"
        "        self.send_response(200 if good else 503); self.end_headers()\n"
        "    def log_message(self, *a): pass\n"
        "s = http.server.HTTPServer(('127.0.0.1', 0), H)\n"
        "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
        "print(healthcheck.main(s.server_port))"
    )
    for path, answer in (("/healthz", "0\n"), ("/other", "1\n")):
        result = run_in_image(["python", "-c", code, path], tmp_path, GROUNDWORK_ALLOWED_HOSTS=".example.org")
        assert result.stdout == answer, result.stderr


def test_health_check_of_the_worker_asks_the_port_that_it_opens(tmp_path: Path) -> None:
    worker = COMPOSE["services"]["worker"]
    port = worker["environment"]["GROUNDWORK_WORKER_HEALTH_PORT"]
    kind, *command = worker["healthcheck"]["test"]
    assert (kind, command) == ("CMD", ["python", "-m", "config.healthcheck", str(port), "/livez"])
    assert run_in_image(command, tmp_path).returncode == 1  # nothing listens
    health = WorkerHealth(lambda: False)
    server = ProbeServer(health, "127.0.0.1", 0)
    server.start()
    try:
        asked = [*command[:3], str(server.server_port), "/livez"]
        assert run_in_image(asked, tmp_path).returncode == 0
        assert run_in_image([*asked[:-1], "/readyz"], tmp_path).returncode == 1, "it has not started"
    finally:
        server.shutdown()
        server.server_close()


def test_image_is_not_root_and_copies_what_exists() -> None:
    users = instructions("USER")
    assert users == ["groundwork"]
    assert DOCKERFILE.rindex("USER ") < DOCKERFILE.rindex("CMD ")
    for line in instructions("COPY"):
        if not line.startswith("--from"):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists(), source
    # .dockerignore lets through what COPY takes, and no more.
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    taken = {
        source
        for line in instructions("COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    }
    assert allowed == taken


def test_packages_are_installed_by_hash_and_without_resolving() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]
    assert len(installs) == 1
    assert "--no-deps --require-hashes" in installs[0]
    pinned = (ROOT / "requirements" / "base.txt").read_text().replace("\\\n", " ")
    lines = [line for line in pinned.splitlines() if line and not line.startswith("#")]
    assert lines
    for line in lines:
        assert re.match(r"[A-Za-z0-9._-]+==\S+ ", line), line
        assert "--hash=sha256:" in line, line


def test_every_variable_of_compose_is_known() -> None:
    text = (ROOT / "compose.yaml").read_text()
    read = set(re.findall(r"\$\{([A-Z_]+)", text))
    own = {"POSTGRES_PASSWORD", "POSTGRES_POOLER", "PUBLISH", "FILES_PASSWORD"}  # compose's alone
    of_boto = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert read - own - of_boto <= set(variables.VARIABLES)
    given = set(COMPOSE["x-groundwork"]["environment"])
    assert given - of_boto <= set(variables.VARIABLES)


def test_example_of_the_environment_is_current() -> None:
    assert (ROOT / ".env.example").read_text() == env.example()


def test_ci_script_is_valid_bash_and_executable() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text()
    subprocess.run(["bash", "-n", str(script)], check=True)
