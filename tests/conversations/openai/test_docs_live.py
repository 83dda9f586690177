"""The examples of the pages that need a server: docs/interop.md, README.md and clients/python/README.md."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import shlex
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.collections.collection.samples import FOLDER
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.conversations.openai.site import Site
from tests.docs_pages import ROOT, block, blocks, commands

pytestmark = pytest.mark.servers


def key_with(site: Site, *scopes: str) -> str:
    with tenant_scope(site.cast.tenant.pk):
        _, key = api_key_create(
            tenant=site.cast.tenant, actor=site.cast.actor("owner"), name="pages", scopes=[*scopes]
        )
    return str(key)


def run(code: str) -> str:
    """Run an example and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own page
    return out.getvalue()


def test_examples_that_need_a_server_are_those_tried_here() -> None:
    run_here = [b for b in blocks() if b.page == "docs/interop.md" and b.language == "py" and not b.not_run]
    assert [b.number for b in run_here] == [1, 2]


def test_mcp_client_of_the_page_lists_tools(site: Site) -> None:
    code = block("docs/interop.md", "py", 1)
    key = key_with(site, "tool.run", "search.run", "collection.read")
    code = code.replace("https://your.server/t/acme/", f"{site.url}/t/{site.cast.tenant.slug}/")
    code = code.replace("gw_...", key)
    imports, body = code.split("\n\n", 1)
    code = f"import asyncio\n{imports}\n\nasync def main():\n{textwrap.indent(body, '    ')}\n"
    names: dict[str, Any] = {}
    exec(compile(code, "docs/interop.md", "exec"), names)  # noqa: S102 - our own page
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        asyncio.run(names["main"]())
    assert "search_documents" in out.getvalue()


def test_openai_client_of_the_page_gets_an_answer_with_citations(site: Site) -> None:
    code = block("docs/interop.md", "py", 2)
    said = run(code.replace("https://groundwork.example.org", site.url).replace("gw_...", site.key))
    answer, citations, marks = said.strip().split("\n")
    assert "[1]" in answer
    assert marks.startswith("[")
    assert "lamps.txt" in citations


def test_client_of_the_readme_works_through_its_day(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # clients/python/README.md
    page = (ROOT / "clients/python/README.md").read_text()
    told = re.search(r"The key of this example has the scopes (.+?)\.\n", page, re.DOTALL)
    assert told
    scopes = re.findall(r"`([a-z.*]+)`", told[1])
    shutil.copy(next(FOLDER.glob("*.pdf")), tmp_path / "lamps.pdf")
    monkeypatch.chdir(tmp_path)
    code = block("clients/python/README.md", "python")
    code = code.replace("https://groundwork.example.org", site.url)
    said = run(code.replace("gw_...", key_with(site, *scopes)))
    assert "lamps.pdf" in said
    assert "finished" in said
    assert said.strip().split("\n")[-1].startswith("not_found ")


def test_commands_of_the_readme_do_what_they_say(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # README.md: those of the second terminal, against the workspace of this test.
    lines = [w for w in commands(block("README.md", "", 1)) if w.startswith("python manage.py ")]
    assert [shlex.split(line)[2] for line in lines] == [
        "ingest",
        "search",
        "ask",
        "dataset_generate",
        "api_key_create",
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    said: dict[str, str] = {}
    for line in lines:
        _, _, name, *given = shlex.split(line.replace("trade-desk", site.cast.tenant.slug))
        out = io.StringIO()
        call_command(name, *given, stdout=out, stderr=io.StringIO())
        said[name] = out.getvalue()
    ready = [line.split()[1] for line in said["ingest"].splitlines() if line.startswith("ready")]
    assert ready == ["running.md:", "webhooks.md:"]
    assert "webhooks.md" in said["search"]
    assert "webhooks.md" in said["ask"]
    rows = [json.loads(row) for row in (tmp_path / "handbook.jsonl").read_text().splitlines()]
    assert rows
    assert said["api_key_create"].strip().startswith("gw_")
