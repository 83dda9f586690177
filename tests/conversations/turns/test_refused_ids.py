"""Ids that a request names are checked when it is made: what is not there for the caller is told at once, and nothing begins."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Turn
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import embedder, storage  # noqa: F401 - fixtures
from tests.conversations.attachments.desk import NOTE, Desk
from tests.conversations.branches.test_branches import end
from tests.conversations.support import ask
from tests.factories import make_collection

JSON = "application/json"
MESSAGES = [{"role": "user", "content": "Hello?"}]


@pytest.fixture
def member(cast: Cast, client: Client) -> Any:
    client.force_login(cast.user("member"))
    return lambda path, body: client.post(f"{path}?tenant={cast.tenant.slug}", body, JSON)


@pytest.mark.parametrize(
    ("path", "asks"), [("chat/completions", {"messages": MESSAGES}), ("responses", {"input": "Hello?"})]
)
@pytest.mark.parametrize("foreign", [True, False])
def test_a_collection_that_is_not_there_is_404_before_a_run_begins(
    cast: Cast, member: Any, path: str, asks: dict[str, Any], foreign: bool
) -> None:
    unknown = 987_654_321
    if foreign:
        with tenant_scope(cast.other_tenant.pk):
            unknown = make_collection(cast.other_tenant).pk
    body = {"model": "extractive", "groundwork": {"collections": [unknown]}, **asks}
    answer = member(f"/v1/{path}", body)
    assert answer.status_code == 404, answer.content
    told = answer.json()
    assert (told["code"], told["error"]["code"]) == ("collection_not_found",) * 2
    assert str(unknown) in told["message"]
    with tenant_scope(cast.tenant.pk):
        assert not Run.objects.exists()


def test_an_edit_refuses_attachments_as_a_turn_does(
    cast: Cast,
    member: Any,
    storage: Any,  # noqa: F811
    embedder: Any,  # noqa: F811
) -> None:
    first = end(ask(cast, "One?"), "1.")
    with tenant_scope(cast.tenant.pk):
        foreign = Desk(cast, "owner").attach("note.txt", NOTE, read=False).pk
        before = Turn.objects.count()
    turns = f"/api/v1/conversations/{first.conversation_id}/turns"
    for address in (turns, f"{turns}/{first.pk}/edit"):
        for unknown in (foreign, 987_654_321):
            answer = member(address, {"text": "Two?", "attachments": [unknown]})
            assert answer.status_code == 400, (address, answer.content)
            assert answer.json()["code"] == "unknown_attachment"
    with tenant_scope(cast.tenant.pk):
        assert Turn.objects.count() == before
