"""Export and import: what goes out comes back, a trial changes nothing, and no file reaches another workspace."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.tools.catalog.services import entry_set
from apps.tools.exchange.files import FIELDS, rows_read, rows_write_csv, rows_write_json
from apps.tools.exchange.services import Imported, catalog_export, catalog_import
from apps.tools.models import ToolEntry, ToolGrant, Toolkit
from apps.tools.permissions.services import grant_create, grant_terms
from apps.tools.toolkits.services import toolkit_set
from basics.errors import Denied, Invalid
from tenancy.models import ApiKey, AuditEvent
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


def who(cast: Cast, role: str = "owner") -> Any:
    tenant = cast.other_tenant if role == "outsider" else cast.tenant
    return {"tenant": tenant, "actor": cast.actor(role)}


def key_of(cast: Cast) -> ApiKey:
    with tenant_scope(cast.tenant.pk):
        key: ApiKey = ApiKey.objects.create(
            tenant=cast.tenant,
            name="Robot",
            prefix="gw_robot",
            secret_sha256="0" * 64,
            user=cast.user("admin"),
        )
    return key


@pytest.fixture
def stated(cast: Cast) -> Cast:
    """A workspace that states one of everything."""
    entry_set(
        **who(cast),
        name="calculate",
        title="Sums",
        tags=["a,b", "=x"],
        timeout_s=5,
        description="=1+1\nnext; line",
    )
    kit = toolkit_set(**who(cast), name="Money", tools=["pay", "charge"])
    collection = make_collection(cast.tenant, "Handbook")
    grant_create(
        **who(cast),
        effect="deny",
        target_kind="toolkit",
        toolkit=kit.pk,
        subject_kind="member",
        subject=str(cast.user("viewer").pk),
    )
    grant_create(
        **who(cast),
        effect="ask",
        target_kind="tool",
        target="pay",
        approver_kind="member",
        approver=str(cast.user("admin").pk),
        approval_hours=5,
        needs_reason=True,
    )
    grant_create(
        **who(cast),
        effect="allow",
        target_kind="pattern",
        target="crm_*",
        calls="read_only",
        collection=collection.pk,
        subject_kind="api_key",
        subject=str(key_of(cast).pk),
        expires_at=timezone.now() + timedelta(days=9),
        arguments=[{"kind": "below", "argument": "amount", "value": 100}],
        note="n",
    )
    return cast


def trial(cast: Cast, content: bytes, role: str = "owner") -> Imported:
    return catalog_import(**who(cast, role), content=content)


def do(cast: Cast, content: bytes, role: str = "owner") -> Imported:
    first = trial(cast, content, role)
    done = catalog_import(**who(cast, role), content=content, expected=first.digest)
    assert done.is_done
    return done


def packed(**rows: Any) -> bytes:
    return json.dumps({"format": "groundwork.tools", "version": 1, **rows}).encode()


def statuses(found: Imported) -> list[str]:
    return [o.status for o in found.outcomes]


def table(cast: Cast) -> Any:
    with tenant_scope(cast.tenant.pk):
        return (
            list(ToolEntry.objects.order_by("pk").values_list("pk", "name", "title")),
            list(Toolkit.objects.order_by("pk").values_list("pk", "name")),
            list(ToolGrant.objects.order_by("pk").values_list("pk", "effect", "target")),
            AuditEvent.objects.count(),
        )


def test_fields_of_files_are_those_of_the_rows() -> None:
    assert set(FIELDS["grants"]) == set(grant_terms(ToolGrant()))


def test_export_comes_back_unchanged_in_both_forms(stated: Cast) -> None:
    rows = catalog_export(**who(stated))
    files = [rows_write_json(rows), *(rows_write_csv(kind, found) for kind, found in rows.items())]
    for text in files:
        found = trial(stated, text.encode())
        assert {o.status for o in found.outcomes} == {"unchanged"}, [o.message for o in found.outcomes]
    assert "@example.org" in files[0]
    assert "gw_robot" in files[0]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_emptied_workspace_is_filled_again_from_its_export(stated: Cast, form: str) -> None:
    rows = catalog_export(**who(stated))
    files = (
        [rows_write_json(rows)] if form == "json" else [rows_write_csv(kind, rows[kind]) for kind in FIELDS]
    )
    with tenant_scope(stated.tenant.pk):
        for model in (ToolGrant, Toolkit, ToolEntry):
            model.objects.all().delete()
    for text in files:
        done = do(stated, text.encode())
        assert {o.status for o in done.outcomes} == {"new"}, [o.message for o in done.outcomes]
    assert catalog_export(**who(stated)) == rows


def test_trial_changes_nothing_and_what_was_tried_is_done(stated: Cast) -> None:
    content = packed(
        entries=[{"name": "calculate", "title": "New"}, {"name": "pay", "is_enabled": False}],
        toolkits=[{"name": "Money", "tools": ["pay"]}, {"name": "Mail", "tools": ["send"]}],
        grants=[
            {"effect": "deny", "target_kind": "toolkit", "toolkit": "Mail"},
            {"effect": "deny", "target_kind": "toolkit", "toolkit": "Nothing"},
            {"effect": "perhaps", "target_kind": "tool", "target": "x"},
        ],
    )
    before = table(stated)
    found = trial(stated, content)
    assert table(stated) == before
    assert statuses(found) == ["changed", "new", "changed", "new", "new", "refused", "refused"]
    assert [(f.name, f.before, f.after) for f in found.outcomes[0].fields] == [("title", "Sums", "New")]
    assert "Nothing" in found.outcomes[5].message
    done = catalog_import(**who(stated), content=content, expected=found.digest, file_name="t.json")
    assert done.is_done
    with tenant_scope(stated.tenant.pk):
        assert ToolEntry.objects.get(name="calculate").tags == ["a,b", "=x"]  # not stated: kept
        assert ToolGrant.objects.filter(toolkit__name="Mail").count() == 1
        actions = set(AuditEvent.objects.values_list("action", flat=True))
        assert {"tool_catalog.import", "tool_entry.set", "toolkit.set", "tool_grant.create"} <= actions
        event = AuditEvent.objects.get(action="tool_catalog.import")
        assert event.data == {"changed": 2, "new": 3, "refused": 2}
    assert statuses(trial(stated, content)) == ["unchanged"] * 5 + ["refused"] * 2


def test_nothing_is_done_when_something_changed_since_the_trial(stated: Cast) -> None:
    content = packed(entries=[{"name": "calculate", "title": "New"}])
    found = trial(stated, content)
    entry_set(**who(stated), name="calculate", title="Meanwhile")
    before = table(stated)
    again = catalog_import(**who(stated), content=content, expected=found.digest)
    assert not again.is_done
    assert table(stated) == before
    assert again.outcomes[0].fields[0].before == "Meanwhile"


def test_digest_of_one_workspace_is_worth_nothing_in_another(stated: Cast) -> None:
    content = packed(entries=[{"name": "x", "title": "y"}])
    found = trial(stated, content)
    other = catalog_import(**who(stated, "outsider"), content=content, expected=found.digest)
    assert not other.is_done


def test_hostile_file_is_refused_row_by_row_and_reaches_no_other_workspace(stated: Cast) -> None:
    """The outsider knows every id of the workspace and writes them wherever a file could name one."""
    with tenant_scope(stated.tenant.pk):
        kit, entry = Toolkit.objects.get(), ToolEntry.objects.get()
        grant = ToolGrant.objects.filter(collection__isnull=False).get()
    member, key = stated.user("viewer"), grant.subject
    base = {"effect": "allow", "target_kind": "pattern", "target": "*"}
    content = packed(
        entries=[
            {"name": "calculate", "title": "Taken", "tenant": stated.tenant.pk},
            {"name": "calculate", "title": "Taken", "tenant_id": stated.tenant.pk},
            {"name": "calculate", "title": "Taken", "tenant": stated.tenant.slug},
            {"id": entry.pk, "name": "calculate", "title": "Taken"},
        ],
        toolkits=[{"pk": kit.pk, "name": "Money", "tools": []}, {"name": "Money", "tools": [], "tenant": 1}],
        grants=[
            {**base, "tenant_id": stated.tenant.pk},
            {**base, "subject_kind": "member", "subject": str(member.pk)},
            {**base, "subject_kind": "member", "subject": member.email},
            {**base, "subject_kind": "api_key", "subject": str(key)},
            {**base, "subject_kind": "api_key", "subject": "gw_robot"},
            {**base, "collection": "Handbook"},
            {**base, "collection": str(grant.collection_id)},
            {"effect": "deny", "target_kind": "toolkit", "toolkit": "Money"},
            {"effect": "deny", "target_kind": "toolkit", "toolkit": str(kit.pk)},
            {**base, "toolkit_id": kit.pk},
        ],
    )
    before = table(stated)
    with platform_scope():
        theirs = ToolGrant.objects.filter(tenant=stated.other_tenant).count()
    found = trial(stated, content, "outsider")
    assert statuses(found) == ["refused"] * 16
    assert all(o.message for o in found.outcomes)
    assert "Handbook" not in "".join(o.message for o in found.outcomes if "Handbook" not in str(o.row.values))
    do(stated, content, "outsider")
    assert table(stated) == before
    with platform_scope():
        assert ToolGrant.objects.filter(tenant=stated.other_tenant).count() == theirs
        assert not ToolEntry.objects.filter(tenant=stated.other_tenant).exists()


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_only_who_manages_tools_may_export_or_import(cast: Cast, role: str) -> None:
    with pytest.raises(Denied):
        catalog_export(**who(cast, role))
    with pytest.raises(Denied):
        trial(cast, packed(entries=[{"name": "x"}]), role)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b"{}",
        b'{"format": "other"}',
        b'{"format": "groundwork.tools", "version": 2}',
        b'{"format": "groundwork.tools", "version": 1, "tenants": []}',
        b'{"format": "groundwork.tools", "version": 1}',
        b'{"format": "groundwork.tools", "version": 1, "grants": {}}',
        b"[" * 100_000,
        b'{"format": "groundwork.tools", "version": 1, "entries": [{"name": "x", "timeout_s": NaN}]}',
        b"name,name\r\na,b",
        b"title\r\na",
        b'name\r\n"a',
        b"name,title",
        b" " * 1_000_001,
        b'{"format": "groundwork.tools", "version": 1, "entries": ['
        + b",".join([b'{"name": "x"}'] * 2_001)
        + b"]}",
        b'{"format": "groundwork.tools", "version": 1, "entries": [{"name": "x", "timeout_s": 1'
        + b"0" * 5_000
        + b"}]}",
    ],
    ids=lambda c: c[:20].decode("latin1") + str(len(c)),
)
def test_what_is_no_file_of_tools_is_refused_in_words(cast: Cast, content: bytes) -> None:
    with pytest.raises(Invalid) as refused:
        trial(cast, content)
    assert refused.value.data["fields"]["file"][0] == refused.value.message


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("entries", {"name": 7}),
        ("entries", {"name": "x", "tags": "a"}),
        ("entries", {"name": "x", "tags": [1]}),
        ("entries", {"name": "x", "is_enabled": "yes"}),
        ("entries", {"name": "x", "timeout_s": "5"}),
        ("entries", {"name": "x", "timeout_s": True}),
        ("entries", {"name": "x", "timeout_s": 1e300}),
        ("entries", {"name": "x", "title": None}),
        ("entries", {"name": "a\x00b"}),
        ("entries", {"name": "\ud800"}),
        ("entries", {"name": ""}),
        ("entries", {"name": "x" * 65}),
        ("entries", {}),
        ("entries", []),
        ("entries", "x"),
        ("toolkits", {"name": "x"}),
        ("toolkits", {"name": "x", "tools": [["y"]]}),
        ("toolkits", {"name": " ", "tools": []}),
        ("grants", {"effect": "deny"}),
        ("grants", {"effect": "deny", "target_kind": "tool", "target": "x", "arguments": {}}),
        ("grants", {"effect": "deny", "target_kind": "tool", "target": "x", "arguments": [{"kind": "x"}]}),
        ("grants", {"effect": "deny", "target_kind": "tool", "target": "x", "arguments": [["a\x00"]]}),
        ("grants", {"effect": "deny", "target_kind": "tool", "target": "x", "expires_at": "soon"}),
        (
            "grants",
            {"effect": "deny", "target_kind": "tool", "target": "x", "expires_at": "2999-01-01T00:00:00"},
        ),
        (
            "grants",
            {
                "effect": "deny",
                "target_kind": "tool",
                "target": "x",
                "expires_at": "2001-01-01T00:00:00+00:00",
            },
        ),
        (
            "grants",
            {"effect": "deny", "target_kind": "tool", "target": "x", "subject_kind": "member", "subject": ""},
        ),
        (
            "grants",
            {
                "effect": "deny",
                "target_kind": "tool",
                "target": "x",
                "subject_kind": "everyone",
                "subject": "x",
            },
        ),
        ("grants", {"effect": "deny", "target_kind": "toolkit"}),
        ("grants", {"effect": "", "target_kind": ""}),
    ],
    ids=lambda v: json.dumps(v)[:60] if not isinstance(v, str) else v,
)
def test_row_that_cannot_be_used_is_refused_and_the_next_one_is_taken(
    cast: Cast, kind: str, row: Any
) -> None:
    found = trial(cast, packed(**{kind: [row]}))
    assert statuses(found) == ["refused"]
    assert found.outcomes[0].message
    good = {
        "entries": {"name": "ok"},
        "toolkits": {"name": "ok", "tools": []},
        "grants": {"effect": "deny", "target_kind": "tool", "target": "ok"},
    }
    assert statuses(do(cast, packed(**{kind: [row, good[kind]]}))) == ["refused", "new"]


def test_cell_of_a_spreadsheet_cannot_be_a_formula() -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "'=1", "'x", "plain", "a\nb", "'"]
    text = rows_write_csv("entries", [{"name": t, "tags": []} for t in texts])
    assert "\n=" not in text
    assert [row.values["name"] for row in rows_read(text.encode())] == texts


def test_csv_line_of_another_length_is_refused_alone() -> None:
    found = rows_read(b"name,title\r\na,b\r\nc\r\nd,e\r\n")
    assert [(r.number, bool(r.problem)) for r in found] == [(2, False), (3, True), (4, False)]
