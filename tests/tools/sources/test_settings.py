"""What a source can be named and set to, and its credentials."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.models import ToolCredential
from apps.tools.sources import credentials
from apps.tools.sources import services as sources_services
from apps.tools.sources.selectors import (
    credential_list,
)
from basics.errors import Invalid, Missing
from jobs.models import Job
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.tools.sources.shop import Shop, audited, create

pytestmark = pytest.mark.django_db(transaction=True)


CANARY = "canary-8f3b1e77-secret"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Shop"),
        ("name", "a_b"),
        ("name", "-a"),
        ("name", ""),
        ("name", "a" * 25),
        ("name", "builtin"),
        ("name", "collections"),
        ("kind", "soap"),
        ("url", "x\ny"),
        ("url", "h" * 501),
        ("title", "t" * 121),
        ("document", "a\0b"),
        ("settings", [1]),
        ("allowed_hosts", ["https://a.org"]),
        ("allowed_hosts", ["a.org:80"]),
        ("allowed_hosts", ["a b"]),
        ("allowed_hosts", [f"h{i}.org" for i in range(51)]),
    ],
)
def test_field_that_cannot_be_used_is_named(cast: Cast, shop: Shop, field: str, value: Any) -> None:
    with pytest.raises(Invalid) as refused:
        create(cast, **{field: value})
    assert list(refused.value.data["fields"]) == [field]


def test_name_is_given_once(cast: Cast, shop: Shop) -> None:
    create(cast)
    with pytest.raises(Invalid, match="already"):
        create(cast)


def test_name_must_not_lead_into_tools_of_the_installation(cast: Cast, shop: Shop) -> None:
    from apps.tools.toolset.bundles import bundle_list

    name = next(t.name for b in bundle_list() for t in b.tools() if "_" in t.name)
    with pytest.raises(Invalid, match="own tools"):
        create(cast, name=name.split("_")[0])


def test_credential_is_never_shown_and_can_be_replaced(cast: Cast, shop: Shop) -> None:
    source, admin = create(cast), cast.actor("admin")
    for secret in ("first-secret-0001", CANARY):
        row = credentials.credential_set(
            tenant=cast.tenant,
            actor=admin,
            source=source.pk,
            placement="header",
            parameter="X-Api-Key",
            secret=secret,
        )
    with tenant_scope(cast.tenant.pk):
        assert ToolCredential.objects.count() == 1
        (shown,) = credential_list(actor=admin)
        assert shown.last_four == CANARY[-4:]
        assert "secret_encrypted" in shown.get_deferred_fields()
        assert CANARY.encode() not in bytes(row.secret_encrypted)
        everything = str([e.data for e in AuditEvent.objects.all()]) + str(Job.objects.values())
    assert CANARY not in everything
    credentials.credential_forget(tenant=cast.tenant, actor=admin, pk=row.pk)
    with pytest.raises(Missing):
        credentials.credential_forget(tenant=cast.tenant, actor=admin, pk=row.pk)
    assert len(audited(cast, "tool_credential.forget")) == 1


@pytest.mark.parametrize(
    ("placement", "parameter", "secret"),
    [
        ("cookie", "a", "s"),
        ("bearer", "x", "s"),
        ("header", "", "s"),
        ("header", "Host", "s"),
        ("header", "content-length", "s"),
        ("header", "a b", "s"),
        ("header", "A\r\nB", "s"),
        ("query", "", "s"),
        ("basic", "", "s"),
        ("basic", "a:b", "s"),
        ("bearer", "", ""),
        ("bearer", "", "a\r\nX: y"),
        ("bearer", "", "ü"),
        ("bearer", "", "s" * 4001),
    ],
)
def test_credential_that_cannot_be_sent_is_refused(
    cast: Cast, shop: Shop, placement: str, parameter: str, secret: str
) -> None:
    source = create(cast)
    with pytest.raises(Invalid):
        credentials.credential_set(
            tenant=cast.tenant,
            actor=cast.actor("admin"),
            source=source.pk,
            placement=placement,
            parameter=parameter,
            secret=secret,
        )


def test_credential_does_not_move_to_another_host(cast: Cast, shop: Shop) -> None:
    source, admin = create(cast), cast.actor("admin")
    row = credentials.credential_set(
        tenant=cast.tenant, actor=admin, source=source.pk, placement="bearer", secret=CANARY
    )
    for url in ("https://evil.example.org/v1", "https://shop.example.org:8443/v1", ""):
        with pytest.raises(Invalid, match="credentials"):
            sources_services.source_update(tenant=cast.tenant, actor=admin, pk=source.pk, url=url)
    sources_services.source_update(
        tenant=cast.tenant, actor=admin, pk=source.pk, url="https://shop.example.org:443/v9"
    )
    credentials.credential_forget(tenant=cast.tenant, actor=admin, pk=row.pk)
    sources_services.source_update(
        tenant=cast.tenant, actor=admin, pk=source.pk, url="https://evil.example.org/v1"
    )
