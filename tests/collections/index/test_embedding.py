"""Which embedder a collection gets, and whose key pays for it."""

from __future__ import annotations

from typing import Any

import pytest

from apps.collections.embedders.base import EmbeddingError
from apps.collections.embedders.registry import make_embedder
from apps.collections.index import embedding
from apps.collections.models import EmbeddingSpace
from tenancy.scope import tenant_scope
from tenancy.services import credential_set
from tests.cast import Cast

pytestmark = pytest.mark.django_db
NAME = "openai/text-embedding-3-small@512"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Record what embedders are made with."""
    calls: list[dict[str, Any]] = []
    real = make_embedder

    def make(setting: str, **options: Any) -> Any:
        calls.append({"setting": setting, **options})
        return real(setting, **options)

    monkeypatch.setattr(embedding, "make_embedder", make)
    return calls


def test_default_space_is_the_local_model_and_is_made_once(cast: Cast) -> None:
    first = embedding.space_default(tenant=cast.tenant)
    assert (first.provider, first.model, first.dimensions) == ("local", "all-MiniLM-L6-v2", 384)
    assert embedding.space_default(tenant=cast.tenant).pk == first.pk
    assert embedding.embedder_for(first, tenant=cast.tenant).space.precision == first.fingerprint


def test_vectors_of_another_version_are_not_compared(cast: Cast) -> None:
    old = EmbeddingSpace.objects.create(
        provider="local", model="all-MiniLM-L6-v2", dimensions=384, fingerprint="int8-old"
    )
    with pytest.raises(EmbeddingError, match="another version"):
        embedding.embedder_for(old, tenant=cast.tenant)


@pytest.mark.parametrize("precision", ["int8-per-channel", "fp32"])
def test_vectors_of_a_version_that_rounded_otherwise_go_on(cast: Cast, precision: str) -> None:
    old = EmbeddingSpace.objects.create(
        provider="local", model="all-MiniLM-L6-v2", dimensions=384, fingerprint=f"{precision}-v2-53aa5117"
    )
    assert embedding.embedder_for(old, tenant=cast.tenant).space.precision == f"{precision}-v3-53aa5117"
    old.fingerprint = f"{precision}-v2-00000000"  # of other weights
    with pytest.raises(EmbeddingError, match="another version"):
        embedding.embedder_for(old, tenant=cast.tenant)


def test_tenants_own_key_is_used_and_only_by_that_tenant(
    cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch, made: list[dict[str, Any]]
) -> None:
    settings.EMBEDDER = NAME
    monkeypatch.setenv("OPENAI_API_KEY", "the-operators")
    with tenant_scope(cast.tenant.pk):
        credential_set(
            tenant=cast.tenant, actor=cast.actor("owner"), provider="openai", secret="sk-the-tenants-own"
        )
        space = embedding.space_default(tenant=cast.tenant)
    with tenant_scope(cast.other_tenant.pk):
        embedding.embedder_for(space, tenant=cast.other_tenant)
    assert [call["api_key"] for call in made] == ["sk-the-tenants-own", "the-operators"]
    assert {call["setting"] for call in made} == {NAME}


def test_missing_key_is_told(cast: Cast, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.EMBEDDER = NAME
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with tenant_scope(cast.tenant.pk), pytest.raises(EmbeddingError) as refused:
        embedding.space_default(tenant=cast.tenant)
    assert refused.value.code == "embedder_misconfigured"
