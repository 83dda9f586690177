"""``manage.py ask`` prints an answer as it is written, then its sources; with or without a worker."""

from __future__ import annotations

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from apps.conversations.answering import tasks
from apps.conversations.citations.markers import CitablePassage
from apps.conversations.display.terminal import PlainAnswer
from jobs.models import Job
from runs import stream
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library
from tests.runs.support import take

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def own_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command find no worker and do the job itself, on a lane that is closed again."""

    def run_here(tenant_id: int, job_id: int) -> None:
        with tenant_scope(tenant_id), ThreadPoolExecutor(1) as executor:
            job = Job.objects.get(pk=job_id)
            ctx = take(job, "here", executor)

            async def work() -> None:
                await tasks.turn_run(ctx, **job.payload)
                await stream.aclose()

            asyncio.run(work())
            executor.submit(connections.close_all).result()

    command = "apps.conversations.management.commands.ask"
    monkeypatch.setattr(f"{command}.is_worker_alive", lambda: False)
    monkeypatch.setattr(f"{command}.run_here", run_here)


def ask(cast: Cast, *args: str) -> str:
    out = io.StringIO()
    call_command("ask", *args, tenant=cast.tenant.slug, stdout=out)
    return out.getvalue()


def test_answer_and_sources_are_printed(cast: Cast, library: Library, found: Any, own_worker: None) -> None:
    text = ask(cast, "What is the duty on cars?", "--collection", "tariff", "--model", "extractive")
    answer, _, sources = text.partition("Sources\n")
    assert "Cars of heading 8703 pay a duty of 2.5 percent" in answer
    assert "[1]" in answer
    assert "[c" not in answer
    assert sources.startswith(f"[1] {library.document.name}, page 1: “")


def test_json_holds_answer_and_sources(cast: Cast, library: Library, found: Any, own_worker: None) -> None:
    data = json.loads(ask(cast, "What is the duty on cars?", "--json"))
    assert data["status"] == "completed"
    assert data["sources"][0]["chunk_id"] == library.chunks[0].pk
    assert "[1]" in data["answer"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("x", "--collection", "nowhere"), "no collection"),
        (("x", "--model", "openai/none"), "not available"),
        (("x", "--user", "stranger@example.org"), "isn.t a member"),
        ((" ",), "Write a question"),
    ],
)
def test_mistakes_are_told(cast: Cast, args: tuple[str, ...], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        ask(cast, *args)


def test_growing_answer_never_takes_back_what_was_printed() -> None:
    passages = {1: CitablePassage(1, 1, "d", "C", "It is 5 percent.")}
    text = "It is 5 percent [c1], not [c99] more.  "
    plain, printed = PlainAnswer(), ""
    for end in range(len(text) + 1):
        printed += plain.more(text[:end], passages, is_complete=end == len(text))
    assert printed == "It is 5 percent [1], not more.  "


def test_answer_that_is_begun_anew_says_so() -> None:
    plain = PlainAnswer()
    assert plain.more("Half an", {}, is_complete=False) == "Half an"
    assert plain.more("Whole.", {}, is_complete=True) == "\n[started again]\nWhole."
