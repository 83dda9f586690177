"""Sources of a workspace's own tools: read in a job, stored as versions, accepted after their contract tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from apps.tools.connectors import base
from apps.tools.connectors.base import FoundTool, SourceError, SourceKind
from apps.tools.connectors.making import source_tools
from apps.tools.models import ContractTest, ToolCredential, ToolSource, ToolVersion
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
from basics.errors import Conflict, Denied, DomainError, Invalid, Missing
from jobs.models import Job
from jobs.runner import run_here
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from toolloop.messages import ToolCall
from toolloop.tools import Tool, ToolContext, Toolset
from toolloop.tools.runtime import CheckedCall, call_prepare, call_run

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-8f3b1e77-secret"


def tool_of(name: str, **facts: Any) -> FoundTool:
    parameters = facts.pop("parameters", None) or {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    }
    facts = {"side_effects": False, "idempotent": True, **facts}
    return FoundTool(name, f"Do {name}.", parameters, **facts)


class Shop:
    """A kind of source whose tools are what the test says, and whose calls answer what it says."""

    def __init__(self) -> None:
        self.tools: list[FoundTool] = [tool_of("shop_get"), tool_of("shop_list")]
        self.answer: Any = {"id": 1, "name": "Lamp"}
        self.problem: DomainError | None = None
        self.reads = 0
        self.on_read: Any = None

    def check(self, source: ToolSource) -> None:
        if source.url and not source.url.startswith("https://"):
            raise Invalid("invalid", "No.", data={"fields": {"url": ["No."]}})

    def read(self, source: ToolSource) -> Sequence[FoundTool]:
        assert not connection.in_atomic_block
        self.reads += 1
        if self.on_read:
            self.on_read()
        if self.problem:
            raise self.problem
        return self.tools

    def make(self, source: ToolSource, versions: Sequence[ToolVersion]) -> Iterable[Tool]:
        async def call(**arguments: Any) -> Any:
            return self.answer

        for version in versions:
            spec = version.spec
            yield Tool(spec["name"], spec["description"], spec["parameters"], call)


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    one = Shop()
    kind = SourceKind("openapi", one.check, one.read, one.make)
    monkeypatch.setitem(base._kinds, "openapi", kind)
    return one


def create(cast: Cast, **fields: Any) -> ToolSource:
    values = {"kind": "openapi", "name": "shop", "url": "https://shop.example.org/v1", **fields}
    row = sources_services.source_create(tenant=cast.tenant, actor=cast.actor("admin"), **values)
    work(cast)
    return row


def work(cast: Cast) -> list[str]:
    """Run the waiting jobs; returns how they ended."""
    with tenant_scope(cast.tenant.pk):
        waiting = list(Job.objects.filter(status="queued", kind="tools.source_refresh").order_by("pk"))
    return [run_here(cast.tenant.pk, job.pk).status for job in waiting]


def refresh(cast: Cast, source: ToolSource, **options: Any) -> list[str]:
    sources_services.source_refresh(tenant=cast.tenant, actor=cast.actor("admin"), pk=source.pk, **options)
    return work(cast)


def states(cast: Cast, **only: Any) -> list[str]:
    """Return the versions as texts: name, number, state, gone."""
    with tenant_scope(cast.tenant.pk):
        rows = ToolVersion.objects.filter(**only).order_by("tool_name", "number")
        return [f"{v} {v.state}{' gone' if v.is_gone else ''}" for v in rows]


def waiting(cast: Cast) -> list[int]:
    with tenant_scope(cast.tenant.pk):
        return list(ToolVersion.objects.filter(state="waiting").values_list("pk", flat=True))


def accept(cast: Cast, *pks: int, **options: Any) -> list[ToolVersion]:
    return sources_versions.version_accept(
        tenant=cast.tenant, actor=cast.actor("admin"), pks=pks or waiting(cast), **options
    )


def audited(cast: Cast, action: str) -> list[dict[str, Any]]:
    with tenant_scope(cast.tenant.pk):
        return list(AuditEvent.objects.filter(action=action).order_by("pk").values_list("data", flat=True))


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


def set_test(cast: Cast, **fields: Any) -> ContractTest:
    values = {
        "tool_name": "shop_get",
        "name": "One lamp",
        "arguments": {"id": 1},
        "expected": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
        **fields,
    }
    return contract_tests.contract_test_set(tenant=cast.tenant, actor=cast.actor("admin"), **values)


def test_failing_contract_test_keeps_a_version_out_unless_forced(cast: Cast, shop: Shop) -> None:
    create(cast)
    set_test(cast)
    shop.answer = {"id": "one"}
    with pytest.raises(Conflict) as refused:
        accept(cast)
    assert refused.value.code == "contract_tests_failed"
    (failure,) = refused.value.data["failures"]
    assert "expected integer" in failure["problem"]
    assert (failure["tool"], failure["version"]) == ("shop_get", 1)
    assert states(cast) == ["shop_get v1 waiting", "shop_list v1 waiting"]
    with tenant_scope(cast.tenant.pk):
        (row,) = contract_test_list(actor=cast.actor("admin"))
    assert (row.last_outcome, row.last_version) == ("failed", 1)
    accept(cast, force=True)
    assert states(cast) == ["shop_get v1 current", "shop_list v1 current"]
    (event,) = audited(cast, "tool_version.accept")
    assert event["forced"] is True
    assert event["failed_tests"] == ["One lamp"]


def test_passing_contract_test_lets_a_version_in(cast: Cast, shop: Shop) -> None:
    create(cast)
    test = set_test(cast)
    accept(cast)
    assert audited(cast, "tool_version.accept")[0]["forced"] is False
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert (ran.last_outcome, ran.last_problem, ran.last_version) == ("passed", "", 1)
    shop.answer = "no JSON at all"
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert ran.last_outcome == "failed"
    contract_tests.contract_test_delete(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert len(audited(cast, "contract_test.run")) == 3


def test_contract_test_with_wrong_arguments_fails_with_words(cast: Cast, shop: Shop) -> None:
    create(cast)
    test = set_test(cast, arguments={"id": "x"})
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert ran.last_outcome == "failed"
    assert "integer" in ran.last_problem


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", "n" * 81),
        ("arguments", [1]),
        ("expected", {"type": 5}),
        ("expected", {"type": "string", "pattern": "(a+)+$"}),
        ("expected", {"$ref": "https://evil.example.org/x"}),
        ("expected", {"properties": {"a": {"patternProperties": {"(a+)+$": {}}}}}),
    ],
)
def test_contract_test_that_cannot_be_used_is_refused(cast: Cast, shop: Shop, field: str, value: Any) -> None:
    create(cast)
    with pytest.raises(Invalid) as refused:
        set_test(cast, **{field: value})
    assert list(refused.value.data["fields"]) == [field]


def test_contract_test_may_speak_of_a_pattern_that_is_a_name(cast: Cast, shop: Shop) -> None:
    create(cast)
    set_test(cast, expected={"properties": {"pattern": {"type": "string"}}, "enum": [{"pattern": 1}]})


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
