"""Settings, Models: a workspace names endpoints, adds models, states prices and limits, hides and forgets."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from runs import remote_models
from runs.providers import catalog_for, models_available
from tenancy.models import ModelEntry, ProviderCredential
from tenancy.scope import tenant_scope
from tests.cast import Cast
from toolloop.tokens import Usage

KEY = "sk-a-real-looking-key-0123456789"


@pytest.fixture
def client(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name in ("GROUNDWORK_COMPATIBLE_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    remote_models._known.clear()
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    return client


def post(cast: Cast, client: Client, action: str, **data: Any) -> Any:
    url = reverse("web:settings-models", args=[cast.tenant.slug])
    return client.post(url, {"action": action, **data})


def state(cast: Cast, client: Client, **data: Any) -> Any:
    values = {"is_enabled": "on", **data}
    return post(cast, client, "model_save", **{f"model-{k}": v for k, v in values.items()})


def page(cast: Cast, client: Client, query: str = "") -> str:
    url = reverse("web:settings-models", args=[cast.tenant.slug])
    return client.get(url + query).content.decode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"name": "llama3"}, "a model name"),
        ({"name": "extractive"}, "Write the model as"),
        ({"name": "openai/x", "price_input": "-1", "price_output": "1"}, "greater than or equal"),
        ({"name": "openai/x", "price_input": "NaN", "price_output": "1"}, "Enter a number"),
        ({"name": "openai/x", "price_input": "1"}, "Enter both input and output prices"),
        ({"name": "openai/x", "price_input": "1", "price_output": "1", "tiers": "9 nan 1"}, "A price"),
        ({"name": "openai/x", "price_input": "1", "price_output": "1", "tiers": "9"}, "Not understood"),
        ({"name": "openai/x", "price_input": "1", "price_output": "1", "tiers": "9 1 -1"}, "A price"),
        ({"name": "openai/x", "context_window": "0"}, "greater than or equal"),
    ],
)
def test_nothing_is_stored_when_what_is_stated_cannot_be(
    cast: Cast, client: Client, data: dict[str, str], said: str
):
    response = state(cast, client, **data)
    assert response.status_code == 422
    assert said in response.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert not ModelEntry.objects.exists()


def test_label_is_shown_as_text(cast: Cast, client: Client):
    assert state(cast, client, name="gpt-6-sol", label="<script>x</script>").status_code == 302
    body = page(cast, client)
    assert "<script>x" not in body
    assert "&lt;script&gt;x" in body


def test_stated_facts_are_used_and_come_back_into_the_form(cast: Cast, client: Client):
    facts = {"label": "Ours", "context_window": "9000", "can_web_search": "no"}
    prices = {"price_input": "1.5", "price_output": "2", "tiers": "200000 4.5 15 - 3"}
    assert state(cast, client, name="gpt-6-sol", **facts, **prices).status_code == 302
    catalog = catalog_for(cast.tenant)
    info = catalog.get_model_info("openai/gpt-6-sol")
    assert (info.label, info.context_window) == ("Ours", 9000)
    assert "web_search" not in info.capabilities
    assert catalog.compute_cost("gpt-6-sol", Usage(100_000)) == pytest.approx(0.15)
    assert catalog.compute_cost("gpt-6-sol", Usage(300_000)) == pytest.approx(1.35)
    form = page(cast, client, "?model=openai/gpt-6-sol")
    for shown in ('value="Ours"', 'value="9000"', 'value="1.5"', "200000 4.5 15.0 - 3.0"):
        assert shown in form


def test_models_of_a_named_endpoint_are_offered_and_hidden_and_forgotten(cast: Cast, client: Client):
    data = {"provider": "compatible", "secret": KEY, "base_url": "https://lab.example.org/v1"}
    for name in ("", "lab"):
        names = "org/a" if name else "org/a, b"
        response = post(cast, client, "save", **data, endpoint=name, model_names=names)
        assert response.status_code == 302
    expected = ["compatible/org/a", "compatible/b", "compatible/lab/org/a", "extractive"]
    assert [m.id for m in models_available(cast.tenant)] == expected
    assert KEY not in page(cast, client)

    assert post(cast, client, "model_hide", model="compatible/lab/org/a").status_code == 302
    assert "compatible/lab/org/a" not in [m.id for m in models_available(cast.tenant)]
    assert "compatible/lab/org/a" in page(cast, client), "what is hidden can be found again"
    post(cast, client, "model_show", model="compatible/lab/org/a")
    assert [m.id for m in models_available(cast.tenant)] == expected
    with tenant_scope(cast.tenant.pk):
        entry = ModelEntry.objects.get()
    assert post(cast, client, "model_forget", entry=entry.pk).status_code == 302
    assert post(cast, client, "model_forget", entry=entry.pk).status_code == 404

    with tenant_scope(cast.tenant.pk):
        row = ProviderCredential.objects.get(endpoint="lab")
    post(cast, client, "remove", credential=row.pk)
    assert [m.id for m in models_available(cast.tenant)] == [*expected[:2], "extractive"]


def test_refusal_of_an_endpoint_name_stands_at_its_field(cast: Cast, client: Client):
    data = {"provider": "compatible", "base_url": "https://x.example.org", "endpoint": "default"}
    response = post(cast, client, "save", **data)
    assert response.status_code == 422
    assert "lower-case letters" in response.content.decode()


def test_rest_lists_the_workspaces_own_facts(cast: Cast, client: Client):
    post(cast, client, "save", provider="openai", secret=KEY, model_names="gpt-6-sol")
    state(cast, client, name="gpt-6-sol", label="Ours", price_input="7", price_output="8")
    headers = {"X-Tenant": cast.tenant.slug}
    listed = client.get(reverse("api:models-list"), headers=headers).json()["data"]
    ours = next(m for m in listed if m["id"] == "openai/gpt-6-sol")
    assert ours["label"] == "Ours"
    assert ours["prices"] == [
        {"input": 7.0, "output": 8.0, "cached_read": None, "cache_write": None, "above_tokens": 0}
    ]
    assert "tools" in ours["capabilities"]
    assert listed[-1]["id"] == "extractive"
