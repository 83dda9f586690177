"""Tools in the admin: writes are the services', refusals stand at their fields, nothing of another workspace is met."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.tools.models import (
    ContractTest,
    ToolCredential,
    ToolEntry,
    ToolGrant,
    Toolkit,
    ToolSource,
    ToolVersion,
)
from apps.tools.services import credential_set, entry_set, grant_create, toolkit_set
from apps.tools.sources import FoundTool
from tenancy.models import ApiKey, AuditEvent, User
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.factories import make_collection

pytestmark = pytest.mark.django_db
CANARY = "canary-secret-4711-abcd"


@pytest.fixture
def owner(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("owner"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def outsider(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.user("outsider"), "django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    root = User.objects.create_superuser("root@example.org", "secret-password")
    client.force_login(root, "django.contrib.auth.backends.ModelBackend")
    return client


def url(name: str, *args: Any, **query: Any) -> str:
    address = reverse(f"admin:tools_{name}", args=args)
    return address + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")


def who(cast: Cast, role: str = "owner") -> Any:
    return {"tenant": cast.tenant, "actor": cast.actor(role)}


def trail(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        return list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))


def make_source(cast: Cast, **values: Any) -> ToolSource:
    with tenant_scope(cast.tenant.pk):
        source: ToolSource = ToolSource.objects.create(
            **{"tenant": cast.tenant, "kind": "openapi", "name": "crm", "url": "https://crm.example.org/api", "document_url": "https://crm.example.org/openapi.json", **values}
        )  # fmt: skip
    return source


def make_version(
    source: ToolSource, number: int = 1, state: str = "current", **spec: Any
) -> ToolVersion:
    found = FoundTool(**{"name": "crm_find", "description": "Find.", "parameters": {"type": "object", "properties": {}}, **spec})  # fmt: skip
    with tenant_scope(source.tenant_id):
        row: ToolVersion = ToolVersion.objects.create(
            tenant_id=source.tenant_id, source=source, tool_name=found.name, number=number, state=state,
            spec=found.to_json(), digest=found.digest(),
        )  # fmt: skip
    return row


ENTRY: dict[str, Any] = {"title": "", "description": "", "category": "", "tags": "", "cost_hint": "", "timeout_s": "", "is_enabled": "on"}  # fmt: skip
GRANT: dict[str, Any] = {
    "effect": "deny", "target_kind": "tool", "target": "pay", "toolkit": "", "calls": "any", "who": "everyone:",
    "collection": "", "arguments": "[]", "expires_at_0": "", "expires_at_1": "", "note": "",
}  # fmt: skip
MEMBERS = {"members-TOTAL_FORMS": "2", "members-INITIAL_FORMS": "0"}


# --- entries ------------------------------------------------------------------------------------


def test_entry_is_written_by_its_service(cast: Cast, owner: Client) -> None:
    data = {**ENTRY, "name": "calculate", "title": "Sums", "tags": "money, numbers"}
    assert owner.post(url("toolentry_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = ToolEntry.objects.get()
    assert (row.name, row.title, row.tags) == ("calculate", "Sums", ["money", "numbers"])
    assert owner.post(url("toolentry_change", row.pk), {**ENTRY, "title": "More"}).status_code == 302  # fmt: skip
    assert [a for a in trail(cast) if a.startswith("tool_")] == ["tool_entry.set", "tool_entry.set"]
    assert owner.post(url("toolentry_delete", row.pk), {"post": "yes"}).status_code == 302
    assert "tool_entry.delete" in trail(cast)


def test_refusal_of_a_service_stands_at_its_field_and_nothing_is_lost(
    cast: Cast, owner: Client
) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    page = owner.post(url("toolentry_add"), {**ENTRY, "name": "calculate", "title": "Other"})
    assert "already" in page.context["adminform"].form.errors["name"][0]
    page = owner.post(url("toolentry_add"), {**ENTRY, "name": "x", "title": "Kept", "timeout_s": "9999"})  # fmt: skip
    assert "600 seconds" in page.context["adminform"].form.errors["timeout_s"][0]
    assert 'value="Kept"' in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.get().title == "Sums"


def test_tools_are_switched_off_and_on_by_actions(cast: Cast, owner: Client) -> None:
    row = entry_set(**who(cast), name="calculate")
    for action, is_enabled in (("switch_off", False), ("switch_on", True)):
        data = {"action": action, "_selected_action": [row.pk]}
        assert owner.post(url("toolentry_changelist"), data).status_code == 302
        with tenant_scope(cast.tenant.pk):
            assert ToolEntry.objects.get().is_enabled is is_enabled


# --- toolkits -----------------------------------------------------------------------------------


def test_toolkit_and_its_tools_are_one_change(cast: Cast, owner: Client) -> None:
    data: dict[str, Any] = {"name": "Money", "description": "d", **MEMBERS, "members-0-tool_name": "pay", "members-1-tool_name": "charge"}  # fmt: skip
    assert owner.post(url("toolkit_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        kit = Toolkit.objects.get()
        rows = list(kit.members.order_by("pk"))
        assert [r.tool_name for r in rows] == ["pay", "charge"]
    data = {
        "description": "d", "members-TOTAL_FORMS": "3", "members-INITIAL_FORMS": "2", "members-0-id": rows[0].pk,
        "members-0-tool_name": "pay", "members-0-DELETE": "on", "members-1-id": rows[1].pk,
        "members-1-tool_name": "charge", "members-2-tool_name": "refund",
    }  # fmt: skip
    assert owner.post(url("toolkit_change", kit.pk), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert sorted(m.tool_name for m in kit.members.all()) == ["charge", "refund"]
    assert trail(cast).count("toolkit.set") == 2
    page = owner.post(url("toolkit_add"), {"name": "Money", "description": "", **MEMBERS})
    assert "already" in page.context["adminform"].form.errors["name"][0]


def test_toolkit_that_rules_use_stays(cast: Cast, owner: Client) -> None:
    kit = toolkit_set(**who(cast), name="Money", tools=["pay"])
    grant_create(**who(cast), effect="deny", target_kind="toolkit", toolkit=kit.pk)
    page = owner.post(url("toolkit_delete", kit.pk), {"post": "yes"}, follow=True)
    assert "Remove the grants" in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert Toolkit.objects.exists()


# --- rules --------------------------------------------------------------------------------------


def test_rule_says_in_words_what_it_does(cast: Cast, owner: Client) -> None:
    viewer = f"member:{cast.user('viewer').pk}"
    conditions = json.dumps([{"kind": "at_most", "argument": "amount", "value": 100}])
    data = {**GRANT, "effect": "ask", "who": viewer, "arguments": conditions}
    assert owner.post(url("toolgrant_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = ToolGrant.objects.get(target="pay")
    assert (row.subject_kind, row.subject) == ("member", str(cast.user("viewer").pk))
    for page in (owner.get(url("toolgrant_changelist")), owner.get(url("toolgrant_change", row.pk))):  # fmt: skip
        text = page.content.decode()
        assert cast.user("viewer").email in text
        assert "amount is at most 100" in text


def test_rule_that_asks_says_who_decides(cast: Cast, owner: Client) -> None:
    admin = cast.user("admin")
    for target, approver in (("own", "self:"), ("second", "role:admin"), ("one", f"member:{admin.pk}")):  # fmt: skip
        data = {**GRANT, "effect": "ask", "target": target, "decides": approver}
        assert owner.post(url("toolgrant_add"), data).status_code == 302
    listed = owner.get(url("toolgrant_changelist")).content.decode()
    with tenant_scope(cast.tenant.pk):
        rows = {row.target: row.pk for row in ToolGrant.objects.all()}
    for target, said in (
        ("own", "once they have approved it themselves, “own”"),
        ("second", "once an admin or owner has approved it, “second”"),
        ("one", f"once {admin.email} has approved it, “one”"),
    ):
        assert said in listed
        assert said in owner.get(url("toolgrant_change", rows[target])).content.decode()


def test_rule_that_is_changed_is_a_new_rule_in_its_place(cast: Cast, owner: Client) -> None:
    old = grant_create(**who(cast), effect="allow", target_kind="tool", target="pay")
    page = owner.post(url("toolgrant_change", old.pk), {**GRANT, "_continue": "1"})
    with tenant_scope(cast.tenant.pk):
        new = ToolGrant.objects.get(target="pay")
    assert page.headers["Location"] == url("toolgrant_change", new.pk)
    assert (new.effect, new.pk != old.pk) == ("deny", True)
    assert owner.get(page.headers["Location"]).status_code == 200
    page = owner.get(url("toolgrant_history", new.pk))
    assert [c.verb for c in page.context["changes"]] == ["made", "removed", "made"]
    assert owner.post(url("toolgrant_change", new.pk), GRANT).status_code == 302  # says the same
    with tenant_scope(cast.tenant.pk):
        assert ToolGrant.objects.get(target="pay").pk == new.pk


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("arguments", '[{"kind": "sometimes"}]', "no condition of kind"), ("arguments", "{", "valid JSON"),
        ("arguments", "{}", "list"), ("target", "", "Name the tool"), ("expires_at_0", "2001-01-01", "over"),
    ],
)  # fmt: skip
def test_rule_that_cannot_be_used_is_refused_at_its_field(
    cast: Cast, owner: Client, field: str, value: str, message: str
) -> None:
    time = {"expires_at_1": "00:00"} if field == "expires_at_0" else {}
    page = owner.post(url("toolgrant_add"), {**GRANT, **time, field: value})
    errors = page.context["adminform"].form.errors[field.removesuffix("_0")]
    assert message in errors[0]
    with tenant_scope(cast.tenant.pk):
        assert not ToolGrant.objects.filter(target="pay").exists()


def test_rule_reaches_no_one_and_nothing_of_another_workspace(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    """The outsider knows every id and writes them into the form."""
    kit = toolkit_set(**who(cast), name="Money", tools=["pay"])
    collection = make_collection(cast.tenant, "Handbook")
    with tenant_scope(cast.tenant.pk):
        key = ApiKey.objects.create(tenant=cast.tenant, name="Robot", prefix="gw_x", secret_sha256="0" * 64)  # fmt: skip
    for change in (
        {"toolkit": kit.pk, "target_kind": "toolkit", "target": ""},
        {"collection": collection.pk},
        {"who": f"member:{cast.user('viewer').pk}"},
        {"who": f"api_key:{key.pk}"},
        {"who": "role:god"},
        {"tenant": cast.tenant.pk, "who": "member:1"},
    ):
        page = outsider.post(url("toolgrant_add"), {**GRANT, **change})
        assert page.status_code == 200
        assert page.context["adminform"].form.errors
    text = outsider.get(url("toolgrant_add")).content.decode()
    for secret in ("Handbook", "Money", "Robot", cast.user("viewer").email, cast.tenant.name):
        assert secret not in text
    with platform_scope():
        assert not ToolGrant.objects.filter(target="pay").exists()


# --- the matrix ---------------------------------------------------------------------------------


def cell(page: Any, target: str, column: str) -> Any:
    row = next(r for r in page.context["rows"] if r["row"].target == target)
    return next(c for c in row["cells"] if c["column"] == column)["cell"]


def test_matrix_shows_and_sets_cells(cast: Cast, owner: Client) -> None:
    page = owner.get(url("matrix"))
    assert cell(page, "calculate", "role:member").effect == "allow"
    data = {"row": ["tool|calculate", "tool|date_add"], "column": ["role:viewer", "role:member"], "effect": "deny"}  # fmt: skip
    page = owner.post(url("matrix"), data, follow=True)
    assert "4 of 4 cells changed" in page.content.decode()
    assert {cell(page, "calculate", f"role:{r}").effect for r in ("viewer", "member")} == {"deny"}
    assert cell(page, "calculate", "role:admin").effect == "allow"
    assert cell(page, "calculate", "role:viewer").own == "deny"
    open_ = owner.get(url("matrix", row="tool|calculate", column="role:viewer"))
    assert open_.context["open"]["rules"]
    page = owner.post(url("matrix"), {**data, "effect": "clear"}, follow=True)
    assert cell(page, "calculate", "role:viewer").effect == "allow"
    assert trail(cast).count("tool_grant.create") == 4


def test_matrix_of_one_person_shows_what_decides_for_them(cast: Cast, owner: Client) -> None:
    person = f"member:{cast.user('viewer').pk}"
    owner.post(url("matrix"), {"row": "tool|calculate", "column": person, "effect": "ask"})
    page = owner.get(url("matrix", subject=person))
    assert cell(page, "calculate", person).effect == "ask"
    assert cell(page, "calculate", "role:viewer").effect == "allow"


@pytest.mark.parametrize(
    "data",
    [
        {}, {"effect": "allow"}, {"effect": "allow", "row": "tool|x"}, {"effect": "x", "row": "tool|x", "column": "role:viewer"},
        {"effect": "allow", "row": "x", "column": "role:viewer"}, {"effect": "allow", "row": "tool|x", "column": "role:god"},
        {"effect": "allow", "row": "tool|x", "column": "member:1"}, {"effect": "allow", "row": "tool|x", "column": "member:x"},
        {"effect": "allow", "row": [f"tool|x{i}" for i in range(501)], "column": "role:viewer"},
        {"effect": "allow", "row": "toolkit|1", "column": "role:viewer"}, {"effect": "allow", "row": "tool|a\x00b", "column": "role:viewer"},
    ],
    ids=lambda d: re.sub(r"\W+", "-", str(d))[:40],
)  # fmt: skip
def test_matrix_refuses_in_words_and_changes_nothing(
    cast: Cast, owner: Client, data: dict[str, Any]
) -> None:
    with tenant_scope(cast.tenant.pk):
        before = ToolGrant.objects.count()
    page = owner.post(url("matrix"), data, follow=True)
    assert page.status_code == 200
    assert 'class="error"' in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert ToolGrant.objects.count() == before


def test_matrix_of_another_workspace_is_not_reached(
    cast: Cast, owner: Client, outsider: Client, operator: Client
) -> None:
    person, collection = f"member:{cast.user('viewer').pk}", make_collection(cast.tenant, "Handbook").pk  # fmt: skip
    grant_create(**who(cast), effect="deny", target_kind="tool", target="calculate", note="ours")
    page = outsider.get(url("matrix", tenant=cast.tenant.pk))
    assert cell(page, "calculate", "role:viewer").effect == "allow"  # the outsider's own
    outsider.post(url("matrix", tenant=cast.tenant.pk), {"tenant": cast.tenant.pk, "row": "tool|calculate", "column": person, "effect": "allow"})  # fmt: skip
    outsider.post(url("matrix", collection=collection), {"row": "tool|calculate", "column": "role:viewer", "effect": "allow"})  # fmt: skip
    assert "Handbook" not in outsider.get(url("matrix")).content.decode()
    with platform_scope():
        assert ToolGrant.objects.filter(target="calculate").count() == 1
    assert operator.get(url("matrix")).context["tenants"]
    page = operator.get(url("matrix", tenant=cast.tenant.pk))
    assert cell(page, "calculate", "role:viewer").effect == "deny"
    operator.post(url("matrix", tenant=cast.tenant.pk), {"row": "tool|date_add", "column": "role:viewer", "effect": "ask"})  # fmt: skip
    with tenant_scope(cast.tenant.pk):
        assert ToolGrant.objects.filter(target="date_add").count() == 1
    for odd in ("0", "x", "9" * 30):
        assert operator.get(url("matrix", tenant=odd)).status_code == 404


# --- history ------------------------------------------------------------------------------------


def test_earlier_state_is_shown_and_brought_back(cast: Cast, owner: Client) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    row = entry_set(**who(cast), name="calculate", title="Numbers")
    changes = owner.get(url("toolentry_history", row.pk)).context["changes"]
    assert [f.after for f in changes[0].fields] == ["Numbers"]
    address = url("toolentry_restore", changes[1].event)
    assert "Sums" in owner.get(address).content.decode()
    assert owner.post(address).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.get().title == "Sums"
    assert "tool_history.restore" in trail(cast)
    owner.post(url("toolentry_delete", row.pk), {"post": "yes"})
    removed = owner.get(url("toolentry_changes")).context["changes"][0]
    assert removed.verb == "removed"
    owner.post(url("toolentry_restore", removed.event))
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.get().title == "Sums"


def test_history_of_another_workspace_does_not_exist(cast: Cast, outsider: Client) -> None:
    row = entry_set(**who(cast), name="calculate", title="Ours")
    with tenant_scope(cast.tenant.pk):
        event = AuditEvent.objects.get(action="tool_entry.set").pk
    assert outsider.get(url("toolentry_history", row.pk)).status_code == 404
    assert outsider.get(url("toolentry_changes", tenant=cast.tenant.pk)).context["changes"] == []
    for kind in ("toolentry", "toolkit", "toolgrant", "toolsource"):
        assert outsider.get(url(f"{kind}_restore", event)).status_code == 404
        assert outsider.post(url(f"{kind}_restore", event)).status_code == 404


# --- files --------------------------------------------------------------------------------------


def upload(content: bytes) -> dict[str, Any]:
    return {"step": "try", "file": SimpleUploadedFile("tools.json", content, "application/json")}


def packed(**rows: Any) -> bytes:
    return json.dumps({"format": "groundwork.tools", "version": 1, **rows}).encode()


def test_file_is_exported_tried_and_imported(cast: Cast, owner: Client, outsider: Client) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    answer = owner.post(url("exchange"), {"step": "export", "form": "json"})
    assert "attachment" in answer.headers["Content-Disposition"]
    page = outsider.post(url("exchange"), upload(answer.content))
    assert page.context["found"].counts["new"] == 1
    with tenant_scope(cast.other_tenant.pk):
        assert not ToolEntry.objects.exists()
    form = page.content.decode()
    hidden = dict(re.findall(r'name="(digest|content|name)" value="([^"]*)"', form))
    answer = outsider.post(url("exchange"), {"step": "do", **hidden})
    assert answer.status_code == 302
    with tenant_scope(cast.other_tenant.pk):
        assert ToolEntry.objects.get().title == "Sums"
    for kind in ("entries", "toolkits", "grants"):
        csv = owner.post(url("exchange"), {"step": "export", "form": "csv", "kind": kind})
        assert csv.headers["Content-Type"].startswith("text/csv")


def test_hostile_file_is_refused_row_by_row(cast: Cast, outsider: Client) -> None:
    row = entry_set(**who(cast), name="calculate", title="Ours")
    content = packed(
        entries=[{"id": row.pk, "name": "calculate", "title": "Theirs"}, {"tenant_id": cast.tenant.pk, "name": "x"}],
        grants=[{"effect": "allow", "target_kind": "pattern", "target": "*", "tenant": cast.tenant.slug}],
    )  # fmt: skip
    page = outsider.post(url("exchange", tenant=cast.tenant.pk), upload(content) | {"tenant": cast.tenant.pk})  # fmt: skip
    found = page.context["found"]
    assert [o.status for o in found.outcomes] == ["refused"] * 3
    data = {"step": "do", "tenant": cast.tenant.pk, "digest": found.digest, "content": base64.b64encode(content).decode()}  # fmt: skip
    outsider.post(url("exchange"), data)
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.get().title == "Ours"
    with tenant_scope(cast.other_tenant.pk):
        assert not ToolEntry.objects.exists()


@pytest.mark.parametrize(
    "data",
    [
        {"step": "do"}, {"step": "do", "content": "%%%"}, {"step": "do", "content": "e30="}, {"step": "try"}, {"step": "x"},
        {"step": "do", "content": base64.b64encode(b'{"format": "groundwork.tools", "version": 1, "entries": [{"name": "x"}]}').decode(), "digest": "0"},
    ],
    ids=lambda d: re.sub(r"\W+", "-", str(d))[:40],
)  # fmt: skip
def test_odd_requests_for_an_import_do_nothing(
    cast: Cast, owner: Client, data: dict[str, Any]
) -> None:
    assert owner.post(url("exchange"), data).status_code == 200
    with tenant_scope(cast.tenant.pk):
        assert not ToolEntry.objects.exists()


# --- sources, versions, tests -------------------------------------------------------------------


def rows_of(source: ToolSource, **rows: Any) -> dict[str, Any]:
    counts = {f"{p}-{n}_FORMS": "0" for p in ("credentials", "contract_tests") for n in ("TOTAL", "INITIAL")}  # fmt: skip
    own = {"title": source.title, "url": source.url, "document_url": source.document_url, "document": "", "settings": "{}", "allowed_hosts": "", "is_enabled": "on"}  # fmt: skip
    return {**counts, **own, **rows}


def test_credential_goes_in_and_never_comes_out(
    cast: Cast, owner: Client, operator: Client
) -> None:
    source = make_source(cast)
    data = rows_of(source, **{"credentials-TOTAL_FORMS": "1", "credentials-0-placement": "bearer", "credentials-0-parameter": "", "credentials-0-secret": CANARY})  # fmt: skip
    page = owner.post(url("toolsource_change", source.pk), data)
    assert page.status_code == 302, page.context["errors"]
    with tenant_scope(cast.tenant.pk):
        row = ToolCredential.objects.get()
        assert row.last_four == CANARY[-4:]
        assert CANARY not in json.dumps(list(AuditEvent.objects.values_list("data", flat=True)))
    for client in (owner, operator):
        for address in (url("toolsource_change", source.pk), url("toolsource_history", source.pk), url("toolsource_changelist")):  # fmt: skip
            text = client.get(address).content.decode()
            assert CANARY not in text
            assert "secret_encrypted" not in text
    assert f"ends in {CANARY[-4:]}" in owner.get(url("toolsource_change", source.pk)).content.decode()  # fmt: skip
    # A refused form does not echo it either.
    bad = {**data, "credentials-0-parameter": "not here"}
    assert CANARY not in owner.post(url("toolsource_change", source.pk), bad).content.decode()
    gone = {**rows_of(source), "credentials-TOTAL_FORMS": "1", "credentials-INITIAL_FORMS": "1", "credentials-0-id": row.pk, "credentials-0-DELETE": "on"}  # fmt: skip
    assert owner.post(url("toolsource_change", source.pk), gone).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert not ToolCredential.objects.exists()


def test_inline_rows_of_another_workspace_are_not_reached(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    theirs = make_source(cast)
    secret = credential_set(**who(cast), source=theirs.pk, placement="bearer", secret=CANARY)
    with tenant_scope(cast.other_tenant.pk):
        own = ToolSource.objects.create(tenant=cast.other_tenant, kind="openapi", name="own", url="https://own.example.org")  # fmt: skip
    for change in (
        {"credentials-0-DELETE": "on"},
        {"credentials-0-secret": "taken-over-0000", "credentials-0-placement": "bearer"},
        {"credentials-0-source": theirs.pk, "credentials-0-secret": "taken-over-0000"},
    ):
        data = rows_of(own, **{"credentials-TOTAL_FORMS": "1", "credentials-INITIAL_FORMS": "1", "credentials-0-id": secret.pk, **change})  # fmt: skip
        outsider.post(url("toolsource_change", own.pk), data)
        assert outsider.post(url("toolsource_change", theirs.pk), data).status_code == 404
    with tenant_scope(cast.tenant.pk):
        kept = ToolCredential.objects.get()
        assert (kept.pk, kept.last_four) == (secret.pk, CANARY[-4:])
    with tenant_scope(cast.other_tenant.pk):
        assert ToolCredential.objects.filter(source=own).count() <= 1


def test_source_is_refreshed_and_switched_by_actions(cast: Cast, owner: Client) -> None:
    source = make_source(cast)
    for action in ("refresh", "switch_off"):
        owner.post(url("toolsource_changelist"), {"action": action, "_selected_action": [source.pk]})  # fmt: skip
    assert {"tool_source.refresh", "tool_source.update"} <= set(trail(cast))
    with tenant_scope(cast.tenant.pk):
        assert not ToolSource.objects.get().is_enabled
    changed = owner.get(url("toolsource_changes")).context["changes"][0]
    assert [f.name for f in changed.fields] == ["is_enabled"]


def test_version_shows_what_changes_and_is_accepted_after_a_look(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    source = make_source(cast)
    old = make_version(source)
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    new = make_version(source, 2, "waiting", parameters=schema, side_effects=True)
    text = owner.get(url("toolversion_change", new.pk)).content.decode()
    assert "breaks calls" in text
    answer = owner.post(url("toolversion_changelist"), {"action": "accept", "_selected_action": [new.pk]})  # fmt: skip
    address = answer.headers["Location"]
    page = owner.get(address)
    assert [v.pk for v, _ in page.context["shown"]] == [new.pk]
    for ids in (str(new.pk), f"{new.pk},{old.pk}"):
        for do in ("accept", "reject"):
            assert outsider.get(url("decide", ids=ids, do=do)).status_code == 404
            assert outsider.post(url("decide", ids=ids, do=do)).status_code == 404
    for odd in ({"ids": "", "do": "accept"}, {"ids": "x"}, {"ids": new.pk, "do": "eat"}, {"ids": "999999999", "do": "accept"}):  # fmt: skip
        assert owner.get(url("decide", **odd)).status_code == 404
    assert owner.post(address).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert ToolVersion.objects.get(pk=new.pk).state == "current"
        assert ToolVersion.objects.get(pk=old.pk).state == "retired"
    assert "tool_version.accept" in trail(cast)


def test_version_is_rejected(cast: Cast, owner: Client) -> None:
    new = make_version(make_source(cast), 1, "waiting")
    assert owner.post(url("decide", ids=new.pk, do="reject")).status_code == 302
    again = owner.post(url("decide", ids=new.pk, do="reject"))
    assert "does not wait" in again.content.decode()


def test_contract_tests_are_attached_at_the_source_and_only_shown_elsewhere(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    source = make_source(cast)
    make_version(source)
    row = {"contract_tests-TOTAL_FORMS": "1", "contract_tests-0-tool_name": "crm_find", "contract_tests-0-name": "finds", "contract_tests-0-arguments": "{}", "contract_tests-0-expected": '{"type": "object"}'}  # fmt: skip
    page = owner.post(url("toolsource_change", source.pk), rows_of(source, **row))
    assert page.status_code == 302
    with tenant_scope(cast.tenant.pk):
        test = ContractTest.objects.get()
    bad = rows_of(source, **{**row, "contract_tests-0-tool_name": "nothing", "contract_tests-0-name": "b"})  # fmt: skip
    assert owner.post(url("toolsource_change", source.pk), bad).status_code == 200
    answer = owner.post(url("contracttest_changelist"), {"action": "run", "_selected_action": [test.pk]})  # fmt: skip
    assert owner.get(answer.headers["Location"]).status_code == 200
    assert outsider.get(url("run_tests", ids=test.pk)).status_code == 404
    assert outsider.post(url("run_tests", ids=test.pk)).status_code == 404
    assert owner.get(url("contracttest_add")).status_code == 403


def test_superuser_names_the_workspace_of_a_new_row(cast: Cast, operator: Client) -> None:
    assert operator.get(url("toolentry_add")).context["tenants"]
    assert operator.get(url("toolgrant_add", tenant=cast.tenant.pk)).status_code == 200
    data = {**ENTRY, "name": "calculate", "tenant": cast.tenant.pk}
    assert operator.post(url("toolentry_add", tenant=cast.tenant.pk), data).status_code == 302
    assert operator.post(url("toolgrant_add"), {**GRANT, "tenant": cast.tenant.pk}).status_code == 302  # fmt: skip
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.count() == 1
        assert AuditEvent.objects.filter(action="tool_entry.set").get().actor_name == "root@example.org"  # fmt: skip
