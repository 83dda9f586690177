"""A workspace's own facts about models: used by its runs, paid by its prices, seen by nobody else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext

from basics.errors import Conflict
from runs import providers, remote_models
from runs.models import Run, RunStatus
from runs.providers import TenantProvider, catalog_for, models_and_catalog, models_available, provider_for
from runs.services import run_execute
from tenancy.models import ModelEntry, ProviderCredential
from tenancy.scope import tenant_scope
from tenancy.services import credential_set, model_entry_set, model_entry_switch
from tests.cast import Cast
from tests.runs.support import make_run, take
from toolloop.errors import ProviderUnavailable
from toolloop.messages import UserMessage
from toolloop.planner_executor import PlannerExecutor
from toolloop.providers.registry import make_provider
from toolloop.providers.scripted import ScriptedProvider, says
from toolloop.tokens import Usage
from toolloop.tools import Toolset

KEY = "sk-a-real-looking-key-0123456789"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "GROUNDWORK_COMPATIBLE_BASE_URL",
        "GROUNDWORK_COMPATIBLE_MODELS",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    remote_models._known.clear()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What adapters are made with, in order."""
    made: list[dict[str, Any]] = []

    def make(name: str, **settings: Any) -> Any:
        made.append(settings)
        return make_provider(name, **settings)

    monkeypatch.setattr(providers, "make_provider", make)
    return made


def lend(cast: Cast, provider: str = "openai", **more: Any) -> ProviderCredential:
    values = {"secret": KEY, **more}
    return credential_set(tenant=cast.tenant, actor=cast.actor("owner"), provider=provider, **values)


def state(cast: Cast, name: str, **facts: Any) -> ModelEntry:
    return model_entry_set(tenant=cast.tenant, actor=cast.actor("owner"), name=name, **facts)


def hide(cast: Cast, name: str) -> None:
    model_entry_switch(tenant=cast.tenant, actor=cast.actor("owner"), name=name, is_enabled=False)


def ids(tenant: Any) -> list[str]:
    return [info.id for info in models_available(tenant)]


@pytest.mark.django_db
def test_another_workspace_sees_and_pays_nothing_of_it(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # Both may use the operator's.
    state(cast, "openai/gpt-6-luna", label="Ours", prices=[{"input": 50, "output": 60}])
    state(cast, "openai/our-tune", context_window=1_000)
    hide(cast, "openai/gpt-6.1-sol")
    usage = Usage(1_000_000)
    assert catalog_for(cast.tenant).compute_cost("gpt-6-luna", usage) == 50.0
    assert catalog_for(cast.other_tenant).compute_cost("gpt-6-luna", usage) == 0.2
    assert "openai/our-tune" in ids(cast.tenant)
    assert "openai/gpt-6.1-sol" not in ids(cast.tenant)
    assert "openai/our-tune" not in ids(cast.other_tenant)
    assert "openai/gpt-6.1-sol" in ids(cast.other_tenant)
    assert {i.label for i in models_available(cast.other_tenant)}.isdisjoint({"Ours"})
    assert provider_for(cast.tenant, "gpt-6-luna").info.prices[0].input == 50.0
    assert provider_for(cast.other_tenant, "gpt-6-luna").info.prices[0].input == 0.1


@pytest.mark.django_db
def test_hidden_model_is_refused_by_any_of_its_names(cast: Cast) -> None:
    lend(cast)
    hide(cast, "openai/gpt-6-luna")
    for name in ("openai/gpt-6-luna", "gpt-6-luna"):
        with pytest.raises(Conflict, match="switched off"):
            provider_for(cast.tenant, name)


@pytest.mark.django_db
def test_endpoint_gets_its_own_address_and_key_and_the_bare_model(
    cast: Cast, given: list[dict[str, Any]]
) -> None:
    lend(cast, "compatible", base_url="https://a.example.org/v1", model_names=["org/m"])
    lend(cast, "compatible", base_url="https://b.example.org/v1", endpoint="lab", secret=KEY[::-1])
    state(cast, "compatible/lab/org/m", capabilities={"image_input": True})
    default = provider_for(cast.tenant, "compatible/org/m")
    lab = provider_for(cast.tenant, "compatible/lab/org/m")
    assert (default.info.endpoint, default.info.model) == ("", "org/m")
    assert (lab.info.endpoint, lab.info.model) == ("lab", "org/m")
    assert "image_input" in lab.info.capabilities
    assert "image_input" not in default.info.capabilities
    assert [made["base_url"] for made in given] == ["https://a.example.org/v1", "https://b.example.org/v1"]
    assert [made["api_key"] for made in given] == [KEY, KEY[::-1]]


@pytest.mark.django_db
def test_endpoint_is_not_replaced_by_the_default_server_when_it_is_off(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    lend(cast, "compatible", base_url="https://b.example.org/v1", endpoint="lab", is_enabled=False)
    with pytest.raises(Conflict, match="endpoint lab"):
        provider_for(cast.tenant, "compatible/lab/m")


@pytest.mark.django_db
def test_address_that_a_workspace_names_cannot_lead_on_to_another(
    cast: Cast, given: list[dict[str, Any]]
) -> None:
    lend(cast, "compatible", base_url="https://b.example.org/v1")
    lend(cast, "openai")
    for model in ("compatible/m", "openai/gpt-6-luna"):
        provider_for(cast.tenant, model)
    assert [made["http_client"].follow_redirects for made in given] == [False, True]


@pytest.mark.django_db
def test_model_that_is_stated_to_have_no_tools_is_planned_for(cast: Cast) -> None:
    lend(cast)
    state(cast, "openai/gpt-6-luna", capabilities={"tools": False})
    assert isinstance(provider_for(cast.tenant, "gpt-6-luna").adapter, PlannerExecutor)
    assert not isinstance(provider_for(cast.tenant, "gpt-6-sol").adapter, PlannerExecutor)


@pytest.mark.django_db
def test_row_that_means_nothing_is_passed_over(cast: Cast) -> None:
    lend(cast)
    with tenant_scope(cast.tenant.pk):
        for name, prices in (("nobody/x", None), ("openai/gpt-6-sol", [{"input": -1, "output": 1}])):
            ModelEntry.objects.create(tenant=cast.tenant, name=name, prices=prices)
        ModelEntry.objects.create(tenant=cast.tenant, name="openai/gpt-6-luna", prices=[{"colour": 1}])
    assert catalog_for(cast.tenant).compute_cost("gpt-6-luna", Usage(1_000_000)) == 0.2
    assert ids(cast.tenant)[-1] == "extractive"


@pytest.mark.django_db
def test_list_and_catalog_take_one_query_however_many_there_are(cast: Cast) -> None:
    counts = []
    for number in range(3):
        lend(
            cast, "compatible", base_url="https://b.example.org/v1", endpoint=f"e{number}", model_names=["m"]
        )
        state(cast, f"compatible/e{number}/n", context_window=5)
        with CaptureQueriesContext(connection) as queries:
            found, _ = models_and_catalog(cast.tenant)
        counts.append(len(queries))
        assert len(found) == 2 * (number + 1) + 1
    assert counts == [1, 1, 1]


@pytest.mark.django_db
def test_what_one_workspaces_key_may_see_is_not_shown_to_another(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listed(base_url: str, api_key: str = "", **_: Any) -> list[str]:
        if api_key != KEY:
            raise ProviderUnavailable("who are you?")
        return ["secret-tune"]

    monkeypatch.setattr(remote_models, "list_remote_models", listed)
    lend(cast, "compatible", base_url="https://b.example.org/v1")
    credential_set(
        tenant=cast.other_tenant,
        actor=cast.actor("outsider"),
        provider="compatible",
        base_url="https://b.example.org/v1",
        secret="",
    )
    assert "compatible/secret-tune" in ids(cast.tenant)
    assert "compatible/secret-tune" not in ids(cast.other_tenant)


@pytest.mark.django_db(transaction=True)
async def test_finished_run_is_paid_by_the_workspaces_prices(cast: Cast) -> None:
    def prepare() -> tuple[Run, Any, TenantProvider]:
        state(cast, "compatible/lab/org/m", prices=[{"input": 3, "output": 4}])
        lend(cast, "compatible", base_url="https://b.example.org/v1", endpoint="lab")
        info = catalog_for(cast.tenant).get_model_info("compatible/lab/org/m")
        script = ScriptedProvider(
            [says("done", usage=Usage(input_total=1_000_000, requests=1))], name="compatible"
        )
        run, job = make_run(cast, model="compatible/lab/org/m")
        return run, take(job, "w"), TenantProvider(script, info)

    run, ctx, provider = await sync_to_async(prepare)()
    with tenant_scope(ctx.tenant_id):
        await run_execute(
            ctx, run, toolset=Toolset([]), provider=provider, system="", history=[UserMessage("hi")]
        )
        stored = await ctx.in_db(Run.objects.get, pk=run.pk)
    assert stored.status == RunStatus.COMPLETED
    assert stored.cost_usd == Decimal("3.000000")
