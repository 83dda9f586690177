"""Sources of a workspace's own tools: read in a job, stored as versions, accepted or rejected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.tools.connectors.base import SourceError
from apps.tools.connectors.making import source_tools
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.sources import contract_tests, credentials
from apps.tools.sources import services as sources_services
from apps.tools.sources import versions as sources_versions
from apps.tools.sources.selectors import (
    contract_test_list,
    credential_list,
    source_get,
    source_list,
    version_changes,
    version_list,
)
from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.tools.sources.shop import Shop, accept, audited, create, refresh, states, tool_of, waiting, work
from toolloop.messages import ToolCall
from toolloop.tools import ToolContext, Toolset
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_first_import_waits_for_somebody(cast: Cast, shop: Shop) -> None:
    source = create(cast)
    assert states(cast) == ["shop_get v1 waiting", "shop_list v1 waiting"]
    with tenant_scope(cast.tenant.pk):
        found = source_get(actor=cast.actor("admin"), pk=source.pk)
        counts = (found.status, found.waiting_count, found.current_count)  # type: ignore[attr-defined]
        assert counts == ("ready", 2, 0)
    accepted = accept(cast)
    assert [str(v) for v in accepted] == ["shop_get v1", "shop_list v1"]
    assert accepted[0].decided_by_id == cast.user("admin").pk
    assert states(cast) == ["shop_get v1 current", "shop_list v1 current"]


def test_all_are_taken_when_asked_for_and_changed_ones_wait_even_then(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    assert states(cast) == ["shop_get v1 current", "shop_list v1 current"]
    shop.tools[0] = replace(shop.tools[0], side_effects=True)
    shop.tools.append(tool_of("shop_new"))
    refresh(cast, source, accept_all=True)
    assert states(cast) == [
        "shop_get v1 current",
        "shop_get v2 waiting",
        "shop_list v1 current",
        "shop_new v1 current",
    ]


def test_refresh_makes_nothing_of_what_did_not_change(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    before = states(cast)
    assert refresh(cast, source) == ["succeeded"]
    assert states(cast) == before
    assert shop.reads == 2


def test_changed_tool_stays_on_its_version_until_accepted(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    shop.tools[0] = replace(shop.tools[0], description="Second form.")
    refresh(cast, source)
    shop.tools[0] = replace(shop.tools[0], description="Third form.")
    refresh(cast, source)
    assert states(cast, tool_name="shop_get") == [
        "shop_get v1 current",
        "shop_get v2 retired",
        "shop_get v3 waiting",
    ]
    shop.tools[0] = replace(shop.tools[0], description="Second form.")
    refresh(cast, source)
    assert states(cast, tool_name="shop_get") == [
        "shop_get v1 current",
        "shop_get v2 waiting",
        "shop_get v3 retired",
    ]
    accept(cast)
    assert states(cast, tool_name="shop_get")[:2] == ["shop_get v1 retired", "shop_get v2 current"]
    with tenant_scope(cast.tenant.pk):
        (first,) = ToolVersion.objects.filter(tool_name="shop_get", number=1)
    accept(cast, first.pk)
    assert states(cast, tool_name="shop_get")[:2] == ["shop_get v1 current", "shop_get v2 retired"]


def test_rejected_form_is_not_offered_again(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    shop.tools[0] = replace(shop.tools[0], description="Second form.")
    refresh(cast, source)
    sources_versions.version_reject(tenant=cast.tenant, actor=cast.actor("admin"), pks=waiting(cast))
    refresh(cast, source)
    assert states(cast, tool_name="shop_get") == ["shop_get v1 current", "shop_get v2 rejected"]
    with pytest.raises(Invalid):
        sources_versions.version_reject(tenant=cast.tenant, actor=cast.actor("admin"), pks=[])
    assert audited(cast, "tool_version.reject")[0]["versions"] == ["shop_get v2"]


async def test_vanished_tool_refuses_in_clear_words(cast: Cast, shop: Shop) -> None:
    from asgiref.sync import sync_to_async

    def vanish() -> ToolVersion:
        source = create(cast, accept_all=True)
        shop.tools[1] = replace(shop.tools[1], description="Other.")
        refresh(cast, source)
        shop.tools.pop()
        refresh(cast, source)
        assert states(cast, tool_name="shop_list") == ["shop_list v1 current gone", "shop_list v2 retired"]
        with tenant_scope(cast.tenant.pk):
            return ToolVersion.objects.select_related("source").get(tool_name="shop_list", number=1)

    version = await sync_to_async(vanish)()
    tools = Toolset(source_tools(version.source, [version]))
    prepared = call_prepare(ToolCall("1", "shop_list", {"id": 1}), tools)
    assert isinstance(prepared, CheckedCall)
    result = await call_run(prepared, ToolContext(), timeout_s=1)
    assert result.is_error
    assert "no longer offered" in result.content


def test_tool_that_comes_back_is_there_again(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    last = shop.tools.pop()
    refresh(cast, source)
    shop.tools.append(last)
    refresh(cast, source)
    assert states(cast, tool_name="shop_list") == ["shop_list v1 current"]


def test_source_that_cannot_be_read_says_why_and_keeps_its_tools(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    shop.problem = SourceError("The server answered with status 503: try again later.")
    assert refresh(cast, source) == ["failed"]
    with tenant_scope(cast.tenant.pk):
        source.refresh_from_db()
    assert (source.status, source.problem) == ("failed", shop.problem.message)
    assert states(cast) == ["shop_get v1 current", "shop_list v1 current"]
    shop.problem = None
    refresh(cast, source)
    with tenant_scope(cast.tenant.pk):
        source.refresh_from_db()
    assert (source.status, source.problem) == ("ready", "")


def test_source_edited_while_it_is_read_is_read_again(cast: Cast, shop: Shop) -> None:
    source = create(cast)

    def edit() -> None:
        shop.on_read = None
        with tenant_scope(cast.tenant.pk):
            ToolSource.objects.get(pk=source.pk).save()

    shop.on_read = edit
    assert refresh(cast, source) == ["succeeded"]
    assert shop.reads == 3


def test_source_removed_while_it_is_read_ends_in_peace(cast: Cast, shop: Shop) -> None:
    source = create(cast)
    shop.on_read = lambda: sources_services.source_delete(
        tenant=cast.tenant, actor=cast.actor("admin"), pk=source.pk
    )
    assert refresh(cast, source) == ["succeeded"]
    assert states(cast) == []


def test_two_tools_of_one_name_are_a_problem_of_the_source(cast: Cast, shop: Shop) -> None:
    shop.tools.append(shop.tools[0])
    source = create(cast)
    with tenant_scope(cast.tenant.pk):
        source.refresh_from_db()
    assert source.status == "failed"
    assert "the same name" in source.problem


def test_update_reads_again_only_when_it_must(cast: Cast, shop: Shop) -> None:
    source = create(cast)
    admin = cast.actor("admin")
    sources_services.source_update(tenant=cast.tenant, actor=admin, pk=source.pk, title="The shop")
    assert work(cast) == []
    sources_services.source_update(
        tenant=cast.tenant, actor=admin, pk=source.pk, url="https://shop.example.org/v2"
    )
    assert work(cast) == ["succeeded"]
    with pytest.raises(TypeError):
        sources_services.source_update(tenant=cast.tenant, actor=admin, pk=source.pk, name="other")
    assert audited(cast, "tool_source.update")[0]["fields"] == ["title"]


def test_version_that_cannot_be_accepted_says_why(cast: Cast, shop: Shop) -> None:
    create(cast, accept_all=True)
    with tenant_scope(cast.tenant.pk):
        first, second = ToolVersion.objects.order_by("tool_name")
    with pytest.raises(Conflict, match="current"):
        accept(cast, first.pk)
    with pytest.raises(Conflict, match="no longer waiting"):
        sources_versions.version_reject(tenant=cast.tenant, actor=cast.actor("admin"), pks=[second.pk])
    with pytest.raises(Missing):
        accept(cast, first.pk, 10**9)


def test_diff_names_what_changed_and_what_is_a_risk(cast: Cast, shop: Shop) -> None:
    source = create(cast, accept_all=True)
    shop.tools[0] = tool_of(
        "shop_get",
        side_effects=True,
        wire={"path": "/other"},
        parameters={
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "lines": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"sku": {"type": "string"}},
                        "required": ["sku"],
                    },
                },
            },
            "required": ["lines"],
        },
    )
    refresh(cast, source)
    with tenant_scope(cast.tenant.pk):
        found = version_changes(actor=cast.actor("admin"), pk=waiting(cast)[0])
    assert (found.old_number, found.new_number) == (1, 2)
    assert [f.field for f in found.fields] == ["side_effects", "wire"]
    assert len(found.risks) == 2
    changes = {p.name: p for p in found.parameters}
    assert list(changes) == ["id", "lines", "lines[].sku"]
    assert (changes["id"].type_old, changes["id"].type_new) == ("integer", "string")
    assert (changes["id"].required_old, changes["id"].required_new) == (True, False)
    assert changes["lines"].breaks
    assert changes["lines"].type_new == "array of object"


ACTS = {
    "create": lambda c, a, s: sources_services.source_create(
        tenant=c.tenant, actor=a, kind="openapi", name="other"
    ),
    "update": lambda c, a, s: sources_services.source_update(tenant=c.tenant, actor=a, pk=s.pk, title="x"),
    "delete": lambda c, a, s: sources_services.source_delete(tenant=c.tenant, actor=a, pk=s.pk),
    "refresh": lambda c, a, s: sources_services.source_refresh(tenant=c.tenant, actor=a, pk=s.pk),
    "accept": lambda c, a, s: sources_versions.version_accept(tenant=c.tenant, actor=a, pks=waiting(c)),
    "reject": lambda c, a, s: sources_versions.version_reject(tenant=c.tenant, actor=a, pks=waiting(c)),
    "credential_set": lambda c, a, s: credentials.credential_set(
        tenant=c.tenant, actor=a, source=s.pk, placement="bearer", secret="x"
    ),
    "credential_forget": lambda c, a, s: credentials.credential_forget(tenant=c.tenant, actor=a, pk=1),
    "test_set": lambda c, a, s: contract_tests.contract_test_set(
        tenant=c.tenant, actor=a, tool_name="shop_get", name="t", arguments={}
    ),
    "test_delete": lambda c, a, s: contract_tests.contract_test_delete(tenant=c.tenant, actor=a, pk=1),
    "test_run": lambda c, a, s: contract_tests.contract_test_run(tenant=c.tenant, actor=a, pk=1),
    "list": lambda c, a, s: source_list(actor=a),
    "versions": lambda c, a, s: version_list(actor=a),
    "credentials": lambda c, a, s: credential_list(actor=a),
    "tests": lambda c, a, s: contract_test_list(actor=a),
}


@pytest.mark.parametrize("act", list(ACTS))
def test_members_without_the_right_are_refused(cast: Cast, shop: Shop, act: str) -> None:
    source = create(cast)
    for role in ("viewer", "member"):
        with pytest.raises(Denied):
            ACTS[act](cast, cast.actor(role), source)


def test_nothing_of_another_workspace_is_there(cast: Cast, shop: Shop) -> None:
    source = create(cast)
    outsider, tenant = cast.actor("outsider"), cast.other_tenant
    pks = waiting(cast)
    for act in (
        lambda: sources_services.source_update(tenant=tenant, actor=outsider, pk=source.pk, title="x"),
        lambda: sources_services.source_refresh(tenant=tenant, actor=outsider, pk=source.pk),
        lambda: sources_services.source_delete(tenant=tenant, actor=outsider, pk=source.pk),
        lambda: sources_versions.version_accept(tenant=tenant, actor=outsider, pks=pks),
        lambda: sources_versions.version_reject(tenant=tenant, actor=outsider, pks=pks),
        lambda: credentials.credential_set(
            tenant=tenant, actor=outsider, source=source.pk, placement="bearer", secret="x"
        ),
        lambda: contract_tests.contract_test_set(
            tenant=tenant, actor=outsider, tool_name="shop_get", name="t", arguments={}
        ),
    ):
        with pytest.raises(Missing):
            act()
    with tenant_scope(tenant.pk):
        assert not source_list(actor=outsider).exists()
