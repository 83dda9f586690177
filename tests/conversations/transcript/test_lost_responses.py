"""Responses that were kept for a program, after access is lost: read again, gone on from, listed and forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.conversations.openai import tasks
from apps.conversations.openai.services import RUN_KIND
from apps.conversations.transcript.segments import response_id_of
from jobs.runner import _finish
from runs.models import Run, RunStatus
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from tests.conversations.transcript.test_lost_access import (
    CANARY,
    OPEN,
    SECRET,
    delete,
    key_of,
    restrict,
)
from tests.losses import LOSSES, narrow
from tests.runs.support import take
from toolloop.providers.scripted import ScriptedProvider, call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = {"model": "assistant/workspace", "stream": True}


class Program:
    """A program with a key, that goes on with it whatever happens to it."""

    def __init__(self, key: str) -> None:
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def send(self, method: str, path: str, **body: Any) -> tuple[int, str]:
        send = getattr(self.client, method)
        said = send(f"/api/v1{path}", body or None, content_type="application/json")
        if not said.streaming:
            return said.status_code, said.content.decode()
        return said.status_code, ""  # nobody reads it: what was said is read again below

    def everything(self, response: str) -> dict[str, tuple[int, str]]:
        """Return what it gets of a kept response, and by going on from it."""
        return {
            "retrieve": self.send("get", f"/responses/{response}"),
            "inputs": self.send("get", f"/responses/{response}/input_items"),
            "go on": self.send("post", "/responses", **ASKED, input="And?", previous_response_id=response),
            "delete": self.send("delete", f"/responses/{response}"),
            "again": self.send("get", f"/responses/{response}"),
        }


def last_run(cast: Cast) -> Run:
    with tenant_scope(cast.tenant.pk):
        run: Run = Run.objects.select_related("job").filter(kind=RUN_KIND).latest("pk")
        return run


async def answered(cast: Cast, lane: Executor) -> None:
    """Do the newest completion's job as a worker would."""
    job = (await sync_to_async(last_run)(cast)).job
    ctx = await sync_to_async(take)(job, "w1", lane)
    with tenant_scope(cast.tenant.pk):
        error: BaseException | None = None
        try:
            await tasks.completion_work(ctx, **job.payload)
        except Exception as raised:  # noqa: BLE001 - the runner's own rules decide
            error = raised
        await ctx.in_db(_finish, ctx, job, error)


@pytest.fixture
async def kept(
    cast: Cast, found: Any, lane_threads: Executor, monkeypatch: Any
) -> tuple[Program, str, tuple[Library, Library]]:
    """A program, the id of a kept response that tells of two documents, and these."""

    def begin() -> tuple[Program, tuple[Library, Library]]:
        libraries = (
            make_library(cast, "Secrets", "Reserve.pdf", [SECRET]),
            make_library(cast, "Rules", "Notice.pdf", [OPEN]),
        )
        program = Program(key_of(cast))
        status, text = program.send("post", "/responses", **ASKED, input="What do we know?")
        assert status == 200, text
        return program, libraries

    program, libraries = await sync_to_async(begin, thread_sensitive=False)()
    secret, other = (library.chunks[0].pk for library in libraries)
    script = [
        calls(call("search_documents", query="what do we know")),
        says(f"{SECRET[:-1]} [c{secret}]. {OPEN[:-1]} [c{other}]."),
    ]
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: ScriptedProvider(script))
    await answered(cast, lane_threads)
    run = await sync_to_async(last_run)(cast)
    assert run.status == RunStatus.COMPLETED
    return program, response_id_of(run.pk, 0), libraries


@pytest.mark.parametrize("lose", [restrict, delete])
async def test_kept_response_tells_no_word_of_a_lost_document(
    cast: Cast, kept: Any, lane_threads: Executor, monkeypatch: Any, lose: Callable[[Cast, Library], None]
) -> None:
    program, response, libraries = kept

    def look() -> None:
        assert CANARY in program.send("get", f"/responses/{response}")[1]
        lose(cast, libraries[0])
        status, said = program.send("get", f"/responses/{response}")
        assert status == 200
        assert CANARY not in said
        assert "Reserve.pdf" not in said or lose is delete  # what is gone may be named
        assert "notice period is 30 days" in said
        status, _ = program.send("post", "/responses", **ASKED, input="And?", previous_response_id=response)
        assert status == 200

    await sync_to_async(look, thread_sensitive=False)()
    heard: list[Any] = []

    class Listening(ScriptedProvider):
        async def stream(self, request: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            heard.append(request)
            async for event in super().stream(request):
                yield event

    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: Listening([says("No.")]))
    await answered(cast, lane_threads)
    assert "notice period is 30 days" in str(heard[0].messages)
    assert CANARY not in str(heard)

    def look_on() -> None:
        later = response_id_of(last_run(cast).pk, 0)
        for text in (said for _, said in program.everything(later).values()):
            assert CANARY not in text

    await sync_to_async(look_on, thread_sensitive=False)()


@pytest.mark.parametrize("lose", LOSSES)
async def test_kept_response_is_closed_to_who_lost_access(
    cast: Cast, kept: Any, lose: Callable[[Cast], None]
) -> None:
    program, response, _ = kept

    def look() -> None:
        runs = last_run(cast).pk
        lose(cast)
        for what, (status, said) in program.everything(response).items():
            assert status == (403 if lose is narrow else 401), (what, said)
            assert "code" in json.loads(said)
            assert CANARY not in said
        assert last_run(cast).pk == runs, "nothing was begun"
        assert not last_run(cast).request["response"].get("deleted")

    await sync_to_async(look, thread_sensitive=False)()
