"""What people and programs are told about money, and what a conversation costs, whatever becomes of its answers."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Executor
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.test import Client

from apps.collections.embedders.base import EmbeddingSpace
from apps.collections.index.spaces import vectors_insert
from apps.conversations.answering import tasks
from apps.conversations.branches import services as branches_services
from apps.conversations.models import QueuedQuestion, Turn
from apps.conversations.transcript import selectors
from apps.conversations.turns import conversations
from apps.conversations.turns import services as turns_services
from apps.tools.models import ToolGrant
from budgets.models import BudgetSpend
from budgets.periods import budget_resets
from runs.models import Run, ToolCall, UsageRecord
from runs.providers import TenantProvider
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.budgets.test_ledger import set_budget, spend
from tests.cast import Cast
from tests.collections.conftest import WordEmbedder, embedder
from tests.conversations.answering.test_modes import asked, follow, written
from tests.conversations.chat.test_views import HTMX, client_of, key_headers, url
from tests.conversations.support import Library, answer, ask, title_made
from tests.midnight import one_day  # noqa: F401 - a fixture
from tests.runs.test_budgets import CENT, MODEL
from tests.tools.mcp_server.conftest import key_of, message, post
from toolloop.errors import AuthFailed
from toolloop.models import get_model_info
from toolloop.providers.scripted import ScriptedProvider, ScriptedTurn, call, calls, fails, says

__all__ = ["embedder", "written"]
pytestmark = pytest.mark.django_db(transaction=True)
PAID = "compatible/paid"


@pytest.fixture
def paid_model(monkeypatch: pytest.MonkeyPatch) -> str:
    """A model whose price is not known, so that it counts; nobody asks it anything here."""
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_MODELS", PAID.removeprefix("compatible/"))
    return PAID


def resets(cast: Cast) -> str:
    with tenant_scope(cast.tenant.pk):
        row = BudgetSpend.objects.select_related("budget").latest("pk")
        anew = budget_resets(row.budget.period, row.starts_at)
    assert anew is not None
    return f"It starts again on {anew.day} {anew:%B} (UTC)."


def test_chat_warns_at_eighty_percent_and_says_clearly_why_it_stops(
    cast: Cast, library: Library, paid_model: str
) -> None:
    set_budget(cast, "10", period="month")
    set_budget(cast, "1000", "member")
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        row = conversations.conversation_create(tenant=cast.tenant, actor=actor, model=paid_model)
        spend(cast, 8.5, user_id=actor.user_id)
    member, owner = client_of(cast, "member"), client_of(cast, "owner")
    for place in (url("home", cast), url("detail", cast, row.pk)):
        page = member.get(place).content.decode()
        assert "The workspace&#x27;s budget of $10 for " in page
        assert "is 85\u00a0% spent." in page
        assert "Your budget" not in page
        assert "Open budgets" not in page
    assert "Open budgets" in owner.get(url("home", cast)).content.decode()

    with tenant_scope(cast.tenant.pk):
        spend(cast, 1.5, user_id=actor.user_id)
    news = member.get(url("recent", cast), {"open": row.pk}).content.decode()
    assert 'hx-target="#budget-notices"' in news
    assert f"is used up. {resets(cast)} An owner can raise it under Settings &gt; Budgets." in news
    form = {"text": "Why?", "client_id": str(uuid.uuid4()), "model": paid_model}
    refused = member.post(url("turn-create", cast, row.pk), form, headers=HTMX)
    assert refused.status_code == 402
    assert f"is used up. {resets(cast)} An owner can raise it" in refused.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert not Turn.objects.exists()
    # What costs nothing still answers.
    form["model"] = "extractive"
    assert member.post(url("turn-create", cast, row.pk), form, headers=HTMX).status_code == 200


def test_rest_and_openai_api_refuse_so_that_no_client_asks_for_ever(cast: Cast, paid_model: str) -> None:
    set_budget(cast, "0", period="month")
    client = Client(headers=key_headers(cast))
    pk = client.post("/api/v1/conversations", {"model": paid_model}, content_type="application/json").json()[
        "id"
    ]
    for when_busy in ("refuse", "queue"):
        asked = client.post(
            f"/api/v1/conversations/{pk}/turns",
            {"text": "Why?", "when_busy": when_busy},
            content_type="application/json",
        )
        assert (asked.status_code, asked.json()["code"]) == (402, "budget_exceeded")
        assert "is used up" in asked.json()["message"]
        assert asked.json()["details"]["kind"] == "tenant"
        assert asked.json()["details"]["resets_at"].endswith("-01T00:00:00+00:00")
    with tenant_scope(cast.tenant.pk):
        assert not Turn.objects.exists()
        assert not QueuedQuestion.objects.exists()
    messages = [{"role": "user", "content": "Why?"}]
    for path, body in (
        ("chat/completions", {"messages": messages}),
        ("chat/completions", {"messages": messages, "stream": True}),
        ("responses", {"input": "Why?"}),
    ):
        told = client.post(f"/api/v1/{path}", {"model": paid_model, **body}, content_type="application/json")
        assert told.status_code == 429
        assert told["x-should-retry"] == "false"
        assert (told.json()["error"]["type"], told.json()["error"]["code"]) == (
            "insufficient_quota",
            "budget_exceeded",
        )


async def test_search_goes_on_by_words_over_mcp_rest_and_in_programs_when_embeddings_cost_too_much(
    cast: Cast, library: Library, embedder: WordEmbedder, written: pytest.MonkeyPatch, lane_threads: Executor
) -> None:
    await sync_to_async(_search_over_http)(cast, library, embedder)
    turn = await sync_to_async(asked)(cast, mode="code")
    program = "print(search_documents(query='notice period'))"
    await answer(turn, lane_threads, written, [calls(call("execute_tools", code=program)), says("So.")])
    with tenant_scope(cast.tenant.pk):
        row = await sync_to_async(ToolCall.objects.get)(run=turn.run_id, name="execute_tools")
    assert row.status == "succeeded"
    assert "budget of $0" in row.content


def _search_over_http(cast: Cast, library: Library, embedder: WordEmbedder) -> None:
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        texts = [chunk.text for chunk in library.chunks]
        vectors_insert(library.collection.space, list(library.chunks), embedder.embed_documents(texts))
        ToolGrant.objects.create(tenant=cast.tenant, effect="allow", target_kind="group", target="code_mode")
    set_budget(cast, "0")
    asks = message("tools/call", name="search_documents", arguments={"query": "notice period"})
    result = post(cast.tenant.slug, asks, key_of(cast)).json()["result"]
    assert not result.get("isError"), result
    assert "Searched by words only" in str(result["content"])
    assert "budget of $0" in str(result["content"])
    client = Client(headers=key_headers(cast))
    found = client.post("/api/v1/search", {"query": "notice"}, content_type="application/json")
    assert found.status_code == 200, found.content
    assert "budget of $0" in found.json()["note"]


async def test_total_counts_every_request_and_usage_outlives_the_conversation(
    cast: Cast,
    library: Library,
    found: list[dict[str, Any]],
    lane_threads: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await sync_to_async(set_budget)(cast, "5")

    async def answered(turn: Turn, *script: ScriptedTurn) -> None:
        provider = ScriptedProvider(list(script), name="anthropic")
        monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: provider)
        await sync_to_async(_priced)(turn)
        await answer(turn, lane_threads)
        assert len(provider.requests) == len(script), "the whole script was said"

    turn = await sync_to_async(asked)(cast, mode="quick")
    billed = AuthFailed("The key is wrong.")
    billed.usage = CENT
    await answered(turn, fails(billed))  # replaced by the next
    turn = await sync_to_async(_act)(cast, turns_services.turn_retry, turn)
    await answered(turn, says("2.5 percent.", usage=CENT))
    monkeypatch.setattr(
        "runs.services.completions.provider_for",
        lambda tenant, model: TenantProvider(
            ScriptedProvider([says("Duties", usage=CENT)], name="anthropic"), get_model_info(MODEL)
        ),
    )
    assert await sync_to_async(_titled)(cast, turn) == "Duties"
    again = await sync_to_async(_act)(cast, branches_services.turn_regenerate, turn, client_id=uuid.uuid4())
    await answered(again, says("Two and a half.", usage=CENT))
    more = await sync_to_async(follow)(cast, again, "And trucks?")
    await answered(more, says("duty on trucks", usage=CENT), says("25 percent.", usage=CENT))
    await sync_to_async(_outlives)(cast, more)


class PaidEmbedder(WordEmbedder):
    """An embedder behind a service that charges: $0.02 a request, by the tokens that it tells."""

    space = EmbeddingSpace("openai", "text-embedding-3-small", 384, "test")

    def embed_query(self, text: str) -> Any:
        self.usage = self.usage.plus(texts=1, tokens=1_000_000, requests=1)
        return super().embed_query(text)


async def test_searches_gradings_and_title_count_in_the_budgets_of_assistant_and_key(
    cast: Cast, library: Library, written: pytest.MonkeyPatch, lane_threads: Executor
) -> None:
    """Whatever an answer pays for beside its own model is on the answer's account; nothing of it goes uncounted."""

    def complete(tenant: Any, model: str) -> TenantProvider:
        script = ScriptedProvider([says(next(said), usage=CENT)], name="anthropic")
        return TenantProvider(script, get_model_info(MODEL))

    grades = {"grades": [{"passage": n, "grade": n} for n in range(1, len(library.chunks) + 1)]}
    said = iter([json.dumps(grades), "Duties"])
    paid = PaidEmbedder()
    written.setattr("apps.collections.search.run.embedder_for", lambda space, *, tenant: paid)
    written.setattr("runs.services.completions.provider_for", complete)
    turn = await sync_to_async(asked)(cast, mode="quick")
    await sync_to_async(_with_grading)(cast, library, turn)
    for kind in ("tenant", "assistant", "key"):
        await sync_to_async(set_budget)(cast, "1", kind)
    provider = ScriptedProvider([says("2.5 percent.")], name="anthropic")
    written.setattr(tasks, "provider_for", lambda tenant, model: provider)
    await answer(turn, lane_threads)
    assert "Cars of heading 8703" in str(provider.requests[0].messages)
    await sync_to_async(_priced)(turn)
    assert await sync_to_async(_titled)(cast, turn) == "Duties"

    def spent() -> tuple[dict[str, Decimal], dict[str, Decimal]]:
        with tenant_scope(cast.tenant.pk):
            rows = BudgetSpend.objects.select_related("budget")
            used = {r.kind: r.charged_usd or Decimal(0) for r in UsageRecord.objects.all()}
            return {r.budget.kind: r.spent_usd for r in rows}, used

    totals, used = await sync_to_async(spent)()
    paid_beside = {"embedding": Decimal("0.02"), "rerank": Decimal("0.018"), "title": Decimal("0.018")}
    assert used == {**paid_beside, "turn": used["turn"]}
    assert totals == dict.fromkeys(("tenant", "assistant", "key"), sum(used.values()))


def _with_grading(cast: Cast, library: Library, turn: Turn) -> None:
    """Have a model grade what is found, and let the question be that of a key."""
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        scopes = ["conversation.*", "collection.read", "search.run", "tool.run", "model.read"]
        key, _ = api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=scopes)
        collection = library.collection
        vectors = WordEmbedder().embed_documents([chunk.text for chunk in library.chunks])
        vectors_insert(collection.space, list(library.chunks), vectors)
        collection.reranker, collection.reranker_model = "model", MODEL
        collection.save(update_fields=["reranker", "reranker_model"])
        run = Run.objects.get(pk=turn.run_id)
        run.request = {**run.request, "actor": {"kind": "api_key", "api_key_id": key.pk}}
        run.save(update_fields=["request"])


def _act(cast: Cast, service: Any, turn: Turn, **more: Any) -> Turn:
    with tenant_scope(cast.tenant.pk):
        made: Turn = service(tenant=cast.tenant, actor=cast.actor("member"), turn=turn, **more)
        return made


def _priced(turn: Turn) -> None:
    with tenant_scope(turn.tenant_id):
        Run.objects.filter(turns__pk=turn.pk).update(model=MODEL)


def _titled(cast: Cast, turn: Turn) -> str:
    with tenant_scope(cast.tenant.pk):
        return title_made(cast, turn)


def _outlives(cast: Cast, turn: Turn) -> None:
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        row = selectors.conversation_get(actor=actor, pk=turn.conversation_id)
        total = selectors.cost_of(actor=actor, conversation=row)
        assert total == 6 * Decimal("0.018")
        other = ask(cast, "Elsewhere?").conversation
        assert selectors.cost_of(actor=actor, conversation=other) is None
        conversations.conversation_delete(tenant=cast.tenant, actor=actor, conversation=row)
        assert not Run.objects.filter(request__conversation=turn.conversation_id).exists()
        kept = UsageRecord.objects.filter(attribution__conversation=turn.conversation_id)
        assert sum(record.cost_usd or 0 for record in kept) == total
        assert BudgetSpend.objects.get().spent_usd == total
