"""A program that stays connected to the MCP server while the access behind it is lost: nothing is read or called after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.collections.documents.access import document_access_set
from apps.collections.models import Document, Page
from apps.tools.calls.services import RUN_KIND
from runs.models import ChunkRead, Run, RunStatus, ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from tests.losses import LOSSES, narrow
from tests.tools.mcp_server.conftest import key_of, message, post

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "zebrafalcon"
SECRET = f"The reserve price of the {CANARY} is 77341 crowns."


class Session:
    """A program that has said hello once and goes on with the same key."""

    def __init__(self, cast: Cast) -> None:
        self.slug, self.key = cast.tenant.slug, key_of(cast, "member")
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        first = post(self.slug, message("initialize", **hello), self.key)
        assert first.status_code == 200
        given = first.headers.get("Mcp-Session-Id", "")
        self.headers = {"Mcp-Session-Id": given} if given else {}

    def ask(self, method: str, **params: Any) -> tuple[int, str]:
        said = post(self.slug, message(method, **params), self.key, **self.headers)
        content = b"".join(said.streaming_content) if said.streaming else said.content
        return said.status_code, content.decode()


@pytest.fixture
def library(cast: Cast) -> Library:
    made = make_library(cast, "Secrets", "Reserve.pdf", [SECRET])
    with tenant_scope(cast.tenant.pk):
        Page.objects.create(tenant=cast.tenant, document=made.document, number=1, text=SECRET, char_start=0)
    return made


def asked(session: Session, library: Library) -> dict[str, tuple[int, str]]:
    """Return what the session gets of everything that it may ask for."""
    said = {
        "tools": session.ask("tools/list"),
        "prompts": session.ask("prompts/list"),
        "resources": session.ask("resources/list"),
    }
    for uri in (
        f"documents/{library.document.pk}",
        f"documents/{library.document.pk}/pages/1",
        f"chunks/{library.chunks[0].pk}",
        f"collections/{library.collection.pk}",
    ):
        said[uri] = session.ask("resources/read", uri=f"groundwork://{uri}")
    return said


@pytest.mark.parametrize("lose", LOSSES)
def test_session_that_stays_open_reads_and_calls_nothing_after_the_loss(
    cast: Cast, library: Library, lose: Callable[[Cast], None]
) -> None:
    session = Session(cast)
    before = {
        name: session.ask("resources/read", uri=f"groundwork://{name}")[1]
        for name in (f"documents/{library.document.pk}", f"chunks/{library.chunks[0].pk}")
    }
    assert all(CANARY in text for text in before.values())
    assert "search_documents" in session.ask("tools/list")[1]
    with tenant_scope(cast.tenant.pk):
        runs = Run.objects.count()
    lose(cast)
    called = session.ask("tools/call", name="calculate", arguments={"expression": "6*7"})
    for what, (status, text) in {**asked(session, library), "call": called}.items():
        assert CANARY not in text, what
        assert "Reserve.pdf" not in text, what
        assert "search_documents" not in text, what
        if lose is not narrow:
            assert status in (401, 403, 404), (what, text)
    with tenant_scope(cast.tenant.pk):
        assert Run.objects.count() == runs, "a call was taken"


def test_document_that_is_limited_to_others_is_gone_from_the_session(cast: Cast, library: Library) -> None:
    session = Session(cast)
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=library.document.pk).update(live_from="2020-01-01T00:00:00Z")
        assert "Reserve.pdf" in session.ask("resources/list")[1]
        run = _ended_run(cast, library)
    uri = f"groundwork://runs/{run.pk}"
    assert CANARY in session.ask("resources/read", uri=uri)[1]
    with tenant_scope(cast.tenant.pk):
        document_access_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            document=library.document,
            is_restricted=True,
            roles=["owner"],
        )
    for what, (status, text) in asked(session, library).items():
        assert CANARY not in text, what
        assert "Reserve.pdf" not in text, what
        assert status == 200, what
    told = session.ask("resources/read", uri=uri)[1]
    assert CANARY not in told
    assert "a source you can't see" in told.lower()


def _ended_run(cast: Cast, library: Library) -> Run:
    """Return a run of a call by the member's key, which found the document."""
    chunk = library.chunks[0]
    run: Run = Run.objects.create(
        tenant=cast.tenant,
        user=cast.user("member"),
        kind=RUN_KIND,
        model="none",
        status=RunStatus.COMPLETED,
        request={"actor": {"kind": "user", "user": cast.member.user_id}},
    )
    found = {
        "chunk_id": chunk.pk,
        "document_id": library.document.pk,
        "document": "Reserve.pdf",
        "text": SECRET,
    }
    ToolCall.objects.create(
        tenant=cast.tenant,
        run=run,
        user_id=cast.member.user_id,
        step=0,
        call_id="a",
        name="search_documents",
        status="succeeded",
        path="mcp",
        content=SECRET,
        payload={"results": [found]},
    )
    ChunkRead.objects.create(
        tenant=cast.tenant,
        run_id=run.pk,
        user_id=cast.member.user_id,
        chunk_id=chunk.pk,
        document_id=library.document.pk,
        document_name="Reserve.pdf",
        tool="search_documents",
    )
    return run
