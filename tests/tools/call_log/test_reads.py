"""Who has read what: passages that reached answers are on record, whatever becomes of the document."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from apps.collections.models import Document
from apps.tools.calls.services import call_parse, calls_execute
from runs.models import ChunkRead
from runs.reads import reads_list, reads_of
from tenancy.actors import Actor
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask, make_library
from toolloop.providers.scripted import ScriptedCall, says

pytestmark = pytest.mark.django_db(transaction=True)


def chunks_read(cast: Cast, role: str = "owner", **choice: int) -> set[int | None]:
    with tenant_scope(cast.tenant.pk):
        return {row.chunk_id for row in reads_list(actor=cast.actor(role), **choice)}


def fetched(cast: Cast, library: Library, place: int, role: str = "member") -> Any:
    """Read one passage with a tool, over REST; returns the run."""
    call = call_parse("c", "get_chunk", f'{{"chunk_id": "c{library.chunks[place].pk}"}}')
    with tenant_scope(cast.tenant.pk):
        done = calls_execute(tenant=cast.tenant, actor=cast.actor(role), calls=[call])
    (result,) = done.results
    assert result is not None
    assert not result.is_error, result.content
    return done.run


async def test_passages_of_a_chat_are_on_record_once_a_run(
    cast: Cast, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = await sync_to_async(make_library)(cast)
    turn = await sync_to_async(ask)(cast)
    wanted = {"chunk_id": f"c{library.chunks[0].pk}"}
    script = [
        says("", ScriptedCall("get_chunk", wanted, "x"), ScriptedCall("get_chunk", wanted, "y")),
        says(f"It is 2.5 percent [c{library.chunks[0].pk}]."),
    ]
    await answer(turn, lane_threads, monkeypatch, script)

    def rows() -> list[ChunkRead]:
        with tenant_scope(cast.tenant.pk):
            return list(ChunkRead.objects.filter(run_id=turn.run_id).order_by("chunk_id"))

    found = await sync_to_async(rows)()
    assert library.chunks[0].pk in [row.chunk_id for row in found]
    assert len({row.chunk_id for row in found}) == len(found)
    first = found[0]
    assert (first.document_id, first.document_name, first.version) == (
        library.document.pk,
        library.document.name,
        1,
    )
    assert (first.user_id, first.collection_name, first.tool) == (
        cast.actor("member").user_id,
        "Tariff",
        "get_chunk",
    )


def test_filters_rights_and_deletion(cast: Cast) -> None:
    library, other = make_library(cast), make_library(cast, "Other", "other.txt", ["Only one."])
    run = fetched(cast, other, 0)
    fetched(cast, library, 0, "owner")
    mine, owners = {other.chunks[0].pk}, {c.pk for c in library.chunks[:2]}
    assert chunks_read(cast, "member") == mine
    assert chunks_read(cast) == mine | owners
    assert chunks_read(cast, document=library.document.pk) == owners
    assert chunks_read(cast, chunk=library.chunks[0].pk) == {library.chunks[0].pk}
    assert chunks_read(cast, who=cast.actor("member").user_id or 0) == mine
    assert chunks_read(cast, run=run.pk) == mine
    with tenant_scope(cast.tenant.pk):
        assert not reads_list(actor=Actor("api_key", cast.tenant.pk, frozenset({"run.read"})))
    assert "other.txt" in page(cast)
    with platform_scope():
        Document.objects.filter(pk=other.document.pk).delete()
    assert chunks_read(cast, document=other.document.pk) == mine
    shown = page(cast, document=str(other.document.pk))
    assert "other.txt" in shown
    assert "deleted" in shown


def test_name_of_a_document_that_one_may_not_read_is_withheld(cast: Cast) -> None:
    library = make_library(cast, document="restructuring-plan.txt")
    fetched(cast, library, 0, "owner")
    with platform_scope():
        Document.objects.filter(pk=library.document.pk).update(is_restricted=True)
    assert "restructuring-plan" not in page(cast, "member")
    shown = page(cast, "admin")
    with tenant_scope(cast.tenant.pk):
        may = Document.objects.visible_to(cast.actor("admin")).filter(pk=library.document.pk).exists()
    assert ("restructuring-plan" in shown) == may


def page(cast: Cast, role: str = "owner", **query: str) -> str:
    client = Client()
    client.force_login(getattr(cast, role).user, "django.contrib.auth.backends.ModelBackend")
    response = client.get(reverse("tools:reads", args=[cast.tenant.slug]), query)
    assert response.status_code == 200
    return response.content.decode()


def test_page_says_when_there_is_nothing_and_when_a_filter_means_nothing(cast: Cast) -> None:
    assert "Nothing read yet" in page(cast)
    assert "Not read yet" in page(cast, document="5")
    assert "These filters can't be used" in page(cast, document="x")


def test_rest_lists_reads(cast: Cast) -> None:
    library = make_library(cast)
    fetched(cast, library, 2)
    client = Client(headers={"X-Tenant": cast.tenant.slug})
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    told = client.get("/api/v1/reads", {"chunk": library.chunks[2].pk}).json()["results"]
    assert [(r["document"], r["user_name"]) for r in told] == [(library.document.pk, cast.member.user.email)]
    assert client.get("/api/v1/reads", {"who": "x"}).status_code == 400


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {"results": 5},
        {
            "results": [
                5,
                {"chunk_id": "1"},
                {"chunk_id": True, "document_id": 1},
                {"chunk_id": 2**64, "document_id": 1},
                {"chunk_id": -1, "document_id": 1},
                {"chunk_id": 1},
            ]
        },
    ],
    ids=["nothing", "a list", "no list", "no ids"],
)
def test_payloads_of_other_tools_are_passed_over(payload: Any) -> None:
    assert reads_of("look", payload) == []


def test_names_are_made_fit_for_their_columns() -> None:
    (row,) = reads_of("t" * 300, {"results": [{"chunk_id": 1, "document_id": 2, "document": "a\0" * 300}]})
    assert (len(row["document_name"]), len(row["tool"]), row["version"]) == (255, 100, None)
    assert "\0" not in row["document_name"]
