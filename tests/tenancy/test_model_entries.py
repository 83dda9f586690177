"""What a workspace states about models: nothing that could not be, and nobody else's business."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.models import AuditEvent, ModelEntry, ProviderCredential
from tenancy.scope import tenant_scope
from tenancy.selectors import credential_for, credentials_and_entries, model_entry_list
from tenancy.services import credential_delete, credential_set, model_entry_delete, model_entry_set
from tenancy.services.credentials import MAX_ENDPOINTS, is_endpoint_name
from tenancy.services.model_entries import CAPABILITIES
from tests.cast import Cast
from toolloop import models as toolloop_models

TIER = {"input": 1.0, "output": 2.0}


def state(cast: Cast, name: str = "openai/gpt-6-sol", *, by: str = "owner", **facts: Any):
    return model_entry_set(tenant=cast.tenant, actor=cast.actor(by), name=name, **facts)


def endpoint(cast: Cast, name: str, **more: Any) -> ProviderCredential:
    values: dict[str, Any] = {"secret": "", "base_url": f"https://{name or 'x'}.example.org/v1"}
    return credential_set(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        provider="compatible",
        endpoint=name,
        **{**values, **more},
    )


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_stating_is_denied_when_the_role_may_not(cast: Cast, role: str):
    with pytest.raises(Denied):
        state(cast, by=role)
    with pytest.raises(Denied):
        model_entry_delete(tenant=cast.tenant, actor=cast.actor(role), name="openai/gpt-6-sol")
    with pytest.raises(Denied):
        model_entry_list(actor=cast.actor(role))


@pytest.mark.parametrize("value", [-1, -0.0001, math.nan, math.inf, 1e9, "1", None, True, [1]])
@pytest.mark.parametrize("key", ["input", "output"])
def test_price_is_refused_when_no_limit_could_count_with_it(cast: Cast, key: str, value: Any):
    with pytest.raises(Invalid) as caught:
        state(cast, prices=[{**TIER, key: value}])
    assert caught.value.data["field"] == "prices"


@pytest.mark.parametrize(
    "prices",
    [
        [{"input": 1.0}],
        [{**TIER, "above_tokens": 1}],
        [{**TIER, "above_tokens": -1}],
        [{**TIER, "above_tokens": 0.5}],
        [TIER, TIER],
        [TIER, {**TIER, "above_tokens": 9}, {**TIER, "above_tokens": 3}],
        [{**TIER, "bonus": 1}],
        [{**TIER, "cached_read": -1}],
        [{**TIER, "cache_write": math.nan}],
        [{**TIER, "above_tokens": n} for n in range(9)],
    ],
)
def test_price_tiers_are_refused_when_they_do_not_rise_from_zero(cast: Cast, prices: Any):
    with pytest.raises(Invalid):
        state(cast, prices=prices)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gpt-6-sol",
        "openai",
        "openai/",
        "/x",
        "gemini/gemini-2.5-pro",
        "extractive",
        "scripted/x",
        "openai/a b",
        "openai/a\x00",
        "openai/a\nb",
        "openai/" + "a" * 114,
        "OpenAI/gpt-6-sol",
    ],
)
def test_name_is_refused_when_it_is_no_written_routing_name(cast: Cast, name: str):
    with pytest.raises(Invalid) as caught:
        state(cast, name)
    assert caught.value.data["field"] == "name"


@pytest.mark.parametrize(
    "facts",
    [
        {"context_window": 0},
        {"context_window": -5},
        {"max_output_tokens": 10**10},
        {"max_output_tokens": True},
        {"capabilities": {"colour": True}},
        {"capabilities": {"tools": "yes"}},
        {"label": "a" * 81},
        {"label": "a\nb"},
    ],
)
def test_fact_is_refused_when_it_cannot_be(cast: Cast, facts: dict[str, Any]):
    with pytest.raises(Invalid):
        state(cast, **facts)


@pytest.mark.parametrize(
    "name", ["default", "openai", "gemini", "Lab", "a/b", "a b", "-a", "ä", "a" * 31, ".."]
)
def test_endpoint_name_is_refused_when_it_could_mean_something_else(cast: Cast, name: str):
    with pytest.raises(Invalid) as caught:
        endpoint(cast, name)
    assert caught.value.data["field"] == "endpoint"


def test_endpoint_is_refused_when_the_provider_has_only_one(cast: Cast):
    with pytest.raises(Invalid, match="Only OpenAI-compatible"):
        credential_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            provider="openai",
            endpoint="lab",
            secret="sk-0123456789abcdef",
        )
    with tenant_scope(cast.tenant.pk), pytest.raises(IntegrityError), transaction.atomic():
        ProviderCredential.objects.create(
            tenant=cast.tenant, provider="openai", endpoint="lab", secret_encrypted=b""
        )


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/v1",
        "http://169.254.169.254/",
        "http://2130706433/",
        "ftp://x.org",
        "http://u@x.org",
        "",
    ],
)
def test_named_endpoint_has_no_address_that_the_default_one_may_not_have(cast: Cast, url: str):
    with pytest.raises(Invalid) as caught:
        endpoint(cast, "lab", base_url=url)
    assert caught.value.data["field"] == "base_url"


def test_endpoint_is_refused_when_it_would_take_over_models_of_the_default_server(cast: Cast):
    endpoint(cast, "", model_names=["qwen/qwen3"])
    with pytest.raises(Invalid, match="qwen/"):
        endpoint(cast, "qwen")
    endpoint(cast, "qw")


def test_endpoints_are_refused_when_there_are_too_many(cast: Cast):
    for number in range(MAX_ENDPOINTS):
        endpoint(cast, f"e{number}")
    with pytest.raises(Invalid, match="Remove one"):
        endpoint(cast, "one-more")
    endpoint(cast, "e0", base_url="https://moved.example.org/v1")


def test_key_cannot_be_read_when_it_was_copied_to_another_endpoint(cast: Cast):
    one = endpoint(cast, "one", secret="sk-of-the-first-endpoint")
    endpoint(cast, "two", secret="sk-of-the-second-endpoint")
    with tenant_scope(cast.tenant.pk):
        rows = ProviderCredential.objects.filter(endpoint="two")
        rows.update(secret_encrypted=one.secret_encrypted)
    with pytest.raises(Conflict):
        credential_for(tenant=cast.tenant, provider="compatible", endpoint="two")


# --- done ------------------------------------------------------------------------------------------------------------


def test_what_is_stated_is_stored_and_audited(cast: Cast):
    prices = [TIER | {"cached_read": Decimal("0.1")}, {**TIER, "above_tokens": 200_000}]
    row = state(cast, label=" Ours ", context_window=9, prices=prices, capabilities={"tools": False})
    assert row.label == "Ours"
    assert row.prices[0] == {**TIER, "cached_read": 0.1, "cache_write": None, "above_tokens": 0}
    assert row.prices[1]["above_tokens"] == 200_000
    again = state(cast, is_enabled=False)
    assert again.pk == row.pk
    assert (again.label, again.prices, again.context_window) == ("", None, None)
    model_entry_delete(tenant=cast.tenant, actor=cast.actor("owner"), name=row.name)
    with pytest.raises(Missing):
        model_entry_delete(tenant=cast.tenant, actor=cast.actor("owner"), name=row.name)
    with tenant_scope(cast.tenant.pk):
        actions = AuditEvent.objects.filter(object_name=row.name).order_by("pk")
        assert [(a.action, a.data.get("is_new")) for a in actions] == [
            ("model_entry.set", True),
            ("model_entry.set", False),
            ("model_entry.delete", None),
        ]


def test_entries_of_one_workspace_are_nobody_elses(cast: Cast):
    state(cast)
    assert [r.name for r in credentials_and_entries(tenant=cast.tenant)[1]] == ["openai/gpt-6-sol"]
    assert credentials_and_entries(tenant=cast.other_tenant) == ([], [])
    with tenant_scope(cast.other_tenant.pk):
        assert not ModelEntry.objects.exists(), "the wall, not the filter"
        assert ModelEntry.objects.filter(tenant=cast.tenant).update(prices=[]) == 0


def test_each_endpoint_keeps_its_own_key_and_address(cast: Cast):
    endpoint(cast, "", secret="sk-of-the-default-endpoint")
    endpoint(cast, "lab", secret="sk-of-the-lab-endpoint-1")
    lab = credential_for(tenant=cast.tenant, provider="compatible", endpoint="lab")
    default = credential_for(tenant=cast.tenant, provider="compatible")
    assert lab is not None
    assert default is not None
    assert lab.secret.reveal() == "sk-of-the-lab-endpoint-1"
    assert default.secret.reveal() == "sk-of-the-default-endpoint"
    credential_delete(tenant=cast.tenant, actor=cast.actor("owner"), provider="compatible", endpoint="lab")
    assert [row.endpoint for row in credentials_and_entries(tenant=cast.tenant)[0]] == [""]


def test_rules_of_this_room_are_those_of_the_loop():
    assert tuple(CAPABILITIES) == toolloop_models.CAPABILITIES
    for name in (*toolloop_models.routing.PREFIXES, "default", "lab", "a", "A", "", "x" * 31, "a-b"):
        assert is_endpoint_name(name) == toolloop_models.is_endpoint_name(name), name
