"""What people and rules say about documents: types, tags, metadata, and who may see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.collections.documents import access, type_rules
from apps.collections.ingestion.document_types import trade_compliance_data
from apps.collections.models import Collection, Document, DocumentAccess
from basics.errors import Denied, DomainError, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, attempt, ingest, upload

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def describe(cast: Cast, document: Document, role: str = "member", **changes: Any) -> Document:
    return type_rules.document_describe(
        tenant=cast.tenant, actor=cast.actor(role), document=document, **changes
    )


def limit(cast: Cast, document: Document, role: str = "admin", **changes: Any) -> Document:
    return access.document_access_set(
        tenant=cast.tenant, actor=cast.actor(role), document=document, **changes
    )


def test_type_is_inferred_by_the_tenants_rules(cast: Cast, collection: Collection, storage: Path) -> None:
    plain = ingest(cast, collection, "other.md", LAMPS)
    assert (plain.document_type, plain.type_reason) == ("", "")
    actor = cast.actor("member")
    type_rules.type_rules_set(tenant=cast.tenant, actor=actor, rules=trade_compliance_data())
    typed = ingest(cast, collection, "lamps.md", LAMPS)
    assert typed.document_type == "general"
    assert typed.type_reason
    type_rules.type_rules_set(tenant=cast.tenant, actor=actor, rules=None)
    assert ingest(cast, collection, "third.md", LAMPS).document_type == ""


def test_wrong_rules_are_refused_and_change_nothing(cast: Cast) -> None:
    actor = cast.actor("member")
    with pytest.raises(DomainError):
        type_rules.type_rules_set(tenant=cast.tenant, actor=actor, rules={"version": 1, "rules": "x"})
    with pytest.raises(Denied):
        type_rules.type_rules_set(tenant=cast.tenant, actor=cast.actor("viewer"), rules=None)


def test_type_set_by_hand_stays_when_a_new_version_comes(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    type_rules.type_rules_set(tenant=cast.tenant, actor=cast.actor("member"), rules=trade_compliance_data())
    document = ingest(cast, collection, "lamps.md", LAMPS)
    describe(cast, document, document_type="ours", tags=["a", "a", "b"], attributes={"by": "Ada"})
    new = attempt(upload(cast, collection, "lamps.md", LAMPS + b"\nMore."))
    assert (new.document_type, new.tags, new.attributes) == ("ours", ["a", "b"], {"by": "Ada"})


@pytest.mark.parametrize(
    "changes",
    [
        {"document_type": "x" * 61},
        {"document_type": 5},
        {"tags": "a"},
        {"tags": [""]},
        {"tags": ["a"] * 51},
        {"attributes": []},
        {"attributes": {"a.b": 1}},
        {"attributes": {"a": {"b": 1}}},
        {"attributes": {"a": float("nan")}},
        {"attributes": {"a": "\x00"}},
        {"name": "x"},
    ],
    ids=str,
)
def test_wrong_facts_are_refused(
    cast: Cast, collection: Collection, storage: Path, changes: dict[str, Any]
) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    with pytest.raises(Invalid) as refused:
        describe(cast, document, **changes)
    assert refused.value.data["fields"]


def test_limited_document_is_seen_in_all_versions_by_those_listed_alone(
    cast: Cast, collection: Collection, storage: Path
) -> None:
    ingest(cast, collection, "lamps.md", LAMPS)
    document = ingest(cast, collection, "lamps.md", LAMPS + b"\nMore.")
    limit(cast, document, is_restricted=True, roles=["admin"])
    assert not Document.objects.visible_to(cast.actor("member")).exists()
    assert Document.objects.visible_to(cast.actor("admin")).count() == 2
    assert not document.chunks.visible_to(cast.actor("member")).exists()
    limit(cast, document, is_restricted=False)
    assert Document.objects.visible_to(cast.actor("member")).count() == 2
    assert not DocumentAccess.objects.exists()
    assert AuditEvent.objects.filter(action="document.access").count() == 2


def test_access_that_makes_no_sense_is_refused(cast: Cast, collection: Collection, storage: Path) -> None:
    document = upload(cast, collection, "lamps.md", LAMPS)
    for changes in ({"roles": ["king"]}, {"users": [10**9]}, {"roles": ["viewer"]}, {}):
        with pytest.raises(Invalid):
            limit(cast, document, is_restricted=True, **changes)
    with pytest.raises(Denied):
        limit(cast, document, "member", is_restricted=False)
    limit(cast, document, is_restricted=True, roles=["admin"])
    with pytest.raises(Missing):
        limit(cast, document, "owner", is_restricted=False)
