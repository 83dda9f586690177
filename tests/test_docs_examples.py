"""Every example of the pages is run by a test, or its page says in a comment why it cannot be.

Commands are read by the real parser of their command here, and run against the product in
``tests/conversations/openai/test_docs_live.py``, as are the examples that need a server.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from django.core.management import get_commands, load_command_class
from django.urls import resolve

from tests.docs_pages import PAGES, ROOT, Block, block, blocks, commands, inline
from tests.toolloop.providers.encodings import Script
from tests.toolloop.providers.wires import ANTHROPIC
from tests.walked import each

LIVE = "tests/conversations/openai/test_docs_live.py"

# Where the examples of a page are run: its language, and the test that takes all of that language.
RUN_BY = {
    ("docs/ARCHITECTURE.md", "mermaid"): "tests/test_architecture.py",
    ("docs/toolloop.md", "python"): "tests/toolloop/test_docs_example.py",
    ("docs/toolkit.md", "python"): "tests/toolloop/test_docs_example.py",
    ("docs/toolkit.md", "toml"): "tests/test_docs_examples.py",
    ("docs/code-mode.md", "python"): "tests/toolloop/code_mode/test_docs_example.py",
    ("docs/code-mode.md", "text"): "tests/toolloop/code_mode/test_docs_example.py",
    ("docs/interop.md", "python"): "tests/toolloop/interop/test_docs_interop.py",
    ("docs/interop.md", "py"): LIVE,
    ("docs/interop.md", "json"): "tests/test_docs_examples.py",
    ("docs/providers.md", "python"): "tests/test_docs_examples.py",
    ("docs/webhooks.md", "python"): "tests/webhooks/test_webhooks.py",
    ("docs/operating-first-day.md", ""): "tests/test_docs_examples.py",
    ("docs/running.md", ""): "tests/test_docs_examples.py",
    ("docs/running.md", "sql"): "tests/test_docs_examples.py",
    ("docs/backups.md", ""): "tests/test_docs_examples.py",
    ("docs/erasure.md", ""): "tests/test_docs_examples.py",
    ("docs/exports.md", ""): "tests/test_docs_examples.py",
    ("docs/upgrading.md", ""): "tests/test_docs_examples.py",
    ("docs/upgrading.md", "python"): "tests/tenancy/upgrades/test_rules.py",
    ("README.md", ""): LIVE,
    ("clients/python/README.md", "python"): LIVE,
    ("clients/python/README.md", "sh"): "tests/test_docs_examples.py",
}
# Commands that are words of the shell, or of programs that are not here.
SHELL = {".", "cp"}
NOT_HERE = {
    "docker": "Docker",
    "claude": "Claude Code",
    "npx": "Node.js",
    "opentelemetry-instrument": "its package",
}


def test_every_example_is_run_or_says_why_not() -> None:
    assert len(blocks()) > 30
    found = {(b.page, b.language) for b in blocks() if not b.not_run}
    assert found - set(RUN_BY) == set(), "run these examples in a test, or say why they cannot be"
    assert set(RUN_BY) - found == set(), "these pages have no such example any more"
    for b in blocks():
        assert not b.not_run or len(b.not_run.split()) > 2, f"{b}: a reason has words"
    for (page, _), test in RUN_BY.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert Path(page).name in text, f"{test} does not look at {page}"


def test_no_fence_goes_unseen() -> None:
    """A block that the pattern does not find would be run by nobody."""
    for path in PAGES:
        fences = re.findall(r"^\s*(?:```|~~~)", path.read_text(encoding="utf-8"), re.MULTILINE)
        seen = [b for b in blocks() if b.page == str(path.relative_to(ROOT))]
        assert len(fences) == 2 * len(seen), path.name


# --- commands --------------------------------------------------------------------------------------


def shown_commands() -> Iterator[tuple[str, str]]:
    """Yield every command line that a page shows, in blocks and in sentences."""
    for b in blocks():
        if b.language in ("", "sh", "bash", "console") and not b.not_run:
            yield from ((b.page, line) for line in commands(b.text))
    for path in PAGES:
        page = str(path.relative_to(ROOT))
        for text in inline(page):
            if re.match(
                r"(make|python|manage\.py|pip|docker|claude|npx|curl|cp|opentelemetry-instrument) ", text
            ):
                yield page, text


SHOWN = sorted(set(shown_commands()))


@each("page, line", SHOWN)
def test_command_is_one_that_there_is(page: str, line: str) -> None:
    words = shlex.split(line)
    program = words[0]
    if program in SHELL:
        assert all((ROOT / w).exists() for w in words[1:2] if not w.startswith(".venv")), line
    elif program == "make":
        made_dry(words[1:])
    elif program == "pip":
        installed = [w for w in words[2:] if "/" in w]
        assert installed
        assert all((ROOT / w).exists() for w in installed), line
    elif program == "curl":
        path = urlsplit(next(w for w in words if "://" in w)).path
        assert resolve(path)
    elif program == "docker":
        compose_understood(words)
    elif program in ("python", "python3", ".venv/bin/python", "manage.py") or "manage.py" in words:
        python_understood(words)
    else:
        assert program in NOT_HERE, f"nobody tries {program}"


def made_dry(words: list[str]) -> None:
    """Have make itself read the line, and ``up`` what it passes on."""
    wanted = [w for w in words if w not in ("NAME", "...")]
    done = subprocess.run(["make", "-n", *wanted], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    passed = next((w.partition("=")[2] for w in words if w.startswith("ARGS=")), "")
    if passed:
        from config.up import arguments

        arguments(argparse.ArgumentParser(exit_on_error=False)).parse_args(shlex.split(passed))


def compose_understood(words: list[str]) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert words[1] == "compose"
    if words[2] == "exec":
        assert words[3] in services
        python_understood(words[4:])
    else:
        options = [w for w in words[2:] if "=" not in w]
        assert set(options) <= {"up", "--build", "--scale"}, words
        for scaled in (w for w in words if "=" in w):
            assert "ports" not in services[scaled.partition("=")[0]]


def python_understood(words: list[str]) -> None:
    """Read a command line with the parser of its command; what the person fills in is made up."""
    at = words.index("manage.py") if "manage.py" in words else None
    if at is None:
        script = next((w for w in words[1:] if w.endswith(".py")), None)
        assert script is None or (ROOT / script).exists(), words
        assert script or words[1] in ("-m", "-c"), words
        return
    if len(words) == at + 1 or words[at + 1] in ("...", "help"):
        return
    name, given = words[at + 1], words[at + 2 :]
    given = given[: given.index(">")] if ">" in given else given
    assert name in get_commands(), name
    if not given:
        return
    command: Any = load_command_class(get_commands()[name], name)
    parser = command.create_parser("manage.py", name)
    filled = [re.sub(r"<[^>]+>", "1", word) for word in given]
    known, unknown = parser.parse_known_args(filled)
    assert unknown == [], f"{name} does not know {unknown}"
    assert known


# --- files and data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [b for b in blocks() if b.language == "json"], ids=str)
def test_settings_of_mcp_clients_are_json_and_lead_to_the_server(shown: Block) -> None:
    # docs/interop.md
    data = json.loads(shown.text)
    servers = data.get("servers") or data["mcpServers"]
    (server,) = servers.values()
    url = server.get("url") or next(a for a in server["args"] if a.startswith("https://"))
    assert resolve(urlsplit(url).path).kwargs == {"tenant_slug": "acme"}
    headers = json.dumps(server)
    assert "Authorization" in headers
    assert "Bearer " in headers


def test_entry_point_of_a_plug_in_is_the_one_that_is_looked_for() -> None:
    # docs/toolkit.md
    data = tomllib.loads(block("docs/toolkit.md", "toml"))
    (group,) = data["project"]["entry-points"]
    code = [*(ROOT / "apps/tools").rglob("*.py"), *(ROOT / "platform").rglob("*.py")]
    assert any(f'"{group}"' in path.read_text() for path in code)


@pytest.mark.django_db
def test_statements_of_the_operators_page_are_taken_by_postgres() -> None:
    # docs/running.md (the commands of docs/upgrading.md are parsed above, like all)
    from django.db import connection

    from tenancy.database.base import as_login_role

    for line in block("docs/running.md", "sql").splitlines():
        statement = line.partition("--")[0].strip()
        with connection.cursor() as cursor, as_login_role():
            # What it would do is another database's: the parser and the names are what is tried.
            cursor.execute(
                "DO $body$ BEGIN IF false THEN "
                + statement.replace("<user>", "CURRENT_USER")
                + " END IF; END $body$"
            )
    assert "CREATE EXTENSION vector" in block("docs/running.md", "sql")


class Messages(BaseHTTPRequestHandler):
    """Anthropic's Messages API, which always says the same."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/messages"
        body = ANTHROPIC.encode(Script(text=["Hello ", "yourself."]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.mark.parametrize(("number", "said"), [(0, "Hello yourself."), (1, "")])
def test_examples_of_the_providers_page_run(number: int, said: str) -> None:
    assert sum((b.page, b.language) == ("docs/providers.md", "python") for b in blocks()) == 2
    with HTTPServer(("127.0.0.1", 0), Messages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        done = subprocess.run(
            [sys.executable, "-c", block("docs/providers.md", "python", number)],
            env={
                "PYTHONPATH": str(ROOT / "platform"),
                "ANTHROPIC_API_KEY": "k",
                "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
                "PATH": os.environ.get("PATH", ""),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        server.shutdown()
        thread.join(10)
    assert done.returncode == 0, done.stderr
    assert done.stdout == said


# --- addresses ----------------------------------------------------------------------------------------

_ROUTE = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/api/v1/[^\s`?,;)]+)")


@cache
def routes() -> dict[str, set[str]]:
    """Return the methods of each address of the API, its parameters without their names."""
    # By its lines: a parser of YAML takes seconds for this document.
    found: dict[str, set[str]] = {}
    for line in (ROOT / "docs/openapi.yaml").read_text(encoding="utf-8").splitlines():
        if path := re.fullmatch(r"  (/\S+):", line):
            route = found.setdefault(re.sub(r"\{[^}]*\}", "{}", path[1]).rstrip("/"), set())
        elif method := re.fullmatch(r"    (get|post|put|patch|delete):", line):
            route.add(method[1])
    assert len(found) > 50
    return found


def routes_shown() -> list[tuple[str, str, str]]:
    return sorted(
        {
            (str(path.relative_to(ROOT)), method, route.rstrip(".:"))
            for path in PAGES
            if path.name != "decisions.md"
            for method, route in _ROUTE.findall(path.read_text(encoding="utf-8"))
        }
    )


@each("page, method, route", routes_shown())
def test_address_of_the_api_is_one_that_there_is(page: str, method: str, route: str) -> None:
    wanted = re.sub(r"[{<][^}>]*[}>]", "{}", route).rstrip("/")
    assert method.lower() in routes().get(wanted, set()), f"{page}: {method} {route}"
