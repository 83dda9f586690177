"""Which models a workspace can use: the operator's, its own, and always the one without a language model."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.db import transaction

from basics.errors import Conflict, Invalid
from runs import remote_models
from runs.providers import model_label, models_available, provider_for
from tenancy.scope import tenant_scope
from tenancy.services import credential_set
from tests.cast import Cast
from tests.servers import wait_for
from toolloop.errors import ProviderUnavailable

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROUNDWORK_COMPATIBLE_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    remote_models._known.clear()


def ids(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        return [m.id for m in models_available(cast.tenant)]


def test_extractive_is_there_without_any_key(cast: Cast) -> None:
    assert ids(cast) == ["extractive"]
    assert model_label("extractive") == "Extractive, no language model"


def test_operators_key_brings_models_and_extractive_stays_last(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    found = ids(cast)
    assert found[-1] == "extractive"
    assert any(i.startswith("anthropic/") for i in found)


def test_workspaces_own_key_is_used_and_belongs_to_it_alone(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        credential_set(
            tenant=cast.tenant, actor=cast.actor("owner"), provider="anthropic", secret="sk-own-key-123456"
        )
        provider = provider_for(cast.tenant, "anthropic/claude-sonnet-4-5")
        assert provider.name == "anthropic"
    assert any(i.startswith("anthropic/") for i in ids(cast))
    with tenant_scope(cast.other_tenant.pk):
        assert [m.id for m in models_available(cast.other_tenant)] == ["extractive"]
        with pytest.raises(Conflict, match="no key"):
            provider_for(cast.other_tenant, "anthropic/claude-sonnet-4-5")


def test_unknown_model_is_refused(cast: Cast) -> None:
    with pytest.raises(Invalid):
        provider_for(cast.tenant, "nobody/nothing")


def test_compatible_server_is_asked_once_a_minute_and_may_be_away(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    asked: list[str] = []
    answers: list[Any] = [["llama", "qwen"], ProviderUnavailable("away")]

    async def listed(base_url: str, api_key: str = "", **_: Any) -> list[str]:
        asked.append(base_url)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    monkeypatch.setattr(remote_models, "list_remote_models", listed)
    expected = ["compatible/llama", "compatible/qwen", "extractive"]
    assert ids(cast) == expected
    assert ids(cast) == expected
    assert len(asked) == 1
    monkeypatch.setattr(remote_models, "TTL_S", 0.0)
    assert ids(cast) == expected  # away: the last answer still holds
    assert len(asked) == 2


def test_server_that_has_answered_is_not_waited_for_in_a_transaction(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
    answers, go_on = [["llama"], ["qwen"]], threading.Event()

    async def listed(base_url: str, api_key: str = "", **_: Any) -> list[str]:
        if len(answers) == 1:
            await asyncio.to_thread(go_on.wait, 60)
        return answers.pop(0)

    monkeypatch.setattr(remote_models, "list_remote_models", listed)
    assert ids(cast) == ["compatible/llama", "extractive"]
    monkeypatch.setattr(remote_models, "TTL_S", 0.0)
    with transaction.atomic():
        assert ids(cast) == ["compatible/llama", "extractive"]
    monkeypatch.setattr(remote_models, "TTL_S", 60.0)
    go_on.set()
    wait_for(lambda: ids(cast) == ["compatible/qwen", "extractive"], "the new answer")


@pytest.mark.parametrize("own_key", [False, True])
def test_version_of_the_gemini_api_holds_for_every_key(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, own_key: bool
) -> None:
    monkeypatch.setenv("GROUNDWORK_GEMINI_API_VERSION", "v1beta")
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-operators-key")
    with tenant_scope(cast.tenant.pk):
        if own_key:
            credential_set(
                tenant=cast.tenant, actor=cast.actor("owner"), provider="google", secret="AIza-own-key-1"
            )
        adapter: Any = provider_for(cast.tenant, "google/gemini-2.5-pro").adapter
    assert adapter._client._api_client._http_options.api_version == "v1beta"
