"""Entries and toolkits in the admin, their history and their file: writes are the services', refusals stand at their fields."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.tools.catalog.services import entry_set
from apps.tools.models import ToolEntry, Toolkit
from apps.tools.permissions.services import grant_create
from apps.tools.toolkits.services import toolkit_set
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.markup import flat
from tests.tools.admin.support import ENTRY, MEMBERS, trail, url, who

pytestmark = pytest.mark.django_db


def test_entry_is_written_by_its_service(cast: Cast, owner: Client) -> None:
    data = {**ENTRY, "name": "calculate", "title": "Sums", "tags": "money, numbers"}
    assert owner.post(url("toolentry_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = ToolEntry.objects.get()
    assert (row.name, row.title, row.tags) == ("calculate", "Sums", ["money", "numbers"])
    assert owner.post(url("toolentry_change", row.pk), {**ENTRY, "title": "More"}).status_code == 302
    assert [a for a in trail(cast) if a.startswith("tool_")] == ["tool_entry.set", "tool_entry.set"]
    assert owner.post(url("toolentry_delete", row.pk), {"post": "yes"}).status_code == 302
    assert "tool_entry.delete" in trail(cast)


def test_list_of_settings_also_has_the_tools_without_any(cast: Cast, owner: Client) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    page = owner.get(url("toolentry_changelist"))
    plain = {tool["name"]: tool["url"] for tool in page.context["plain_tools"]}
    assert len(plain) > 20
    assert "calculate" not in plain  # it has settings, and is in the list above
    form = owner.get(plain["date_add"]).context["adminform"].form
    assert form.initial["name"] == "date_add"


def test_refusal_of_a_service_stands_at_its_field_and_nothing_is_lost(cast: Cast, owner: Client) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    page = owner.post(url("toolentry_add"), {**ENTRY, "name": "calculate", "title": "Other"})
    assert "already" in page.context["adminform"].form.errors["name"][0]
    page = owner.post(url("toolentry_add"), {**ENTRY, "name": "x", "title": "Kept", "timeout_s": "9999"})
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


def test_toolkit_and_its_tools_are_one_change(cast: Cast, owner: Client) -> None:
    data: dict[str, Any] = {
        "name": "Money",
        "description": "d",
        **MEMBERS,
        "members-0-tool_name": "pay",
        "members-1-tool_name": "charge",
    }
    assert owner.post(url("toolkit_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        kit = Toolkit.objects.get()
        rows = list(kit.members.order_by("pk"))
        assert [r.tool_name for r in rows] == ["pay", "charge"]
    data = {
        "description": "d",
        "members-TOTAL_FORMS": "3",
        "members-INITIAL_FORMS": "2",
        "members-0-id": rows[0].pk,
        "members-0-tool_name": "pay",
        "members-0-DELETE": "on",
        "members-1-id": rows[1].pk,
        "members-1-tool_name": "charge",
        "members-2-tool_name": "refund",
    }
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
    assert "This toolkit is used in rules" in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert Toolkit.objects.exists()


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
    hidden = dict(re.findall(r'name="(digest|content|name)" value="([^"]*)"', flat(form)))
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
        entries=[
            {"id": row.pk, "name": "calculate", "title": "Theirs"},
            {"tenant_id": cast.tenant.pk, "name": "x"},
        ],
        grants=[{"effect": "allow", "target_kind": "pattern", "target": "*", "tenant": cast.tenant.slug}],
    )
    page = outsider.post(url("exchange", tenant=cast.tenant.pk), upload(content) | {"tenant": cast.tenant.pk})
    found = page.context["found"]
    assert [o.status for o in found.outcomes] == ["refused"] * 3
    data = {
        "step": "do",
        "tenant": cast.tenant.pk,
        "digest": found.digest,
        "content": base64.b64encode(content).decode(),
    }
    outsider.post(url("exchange"), data)
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.get().title == "Ours"
    with tenant_scope(cast.other_tenant.pk):
        assert not ToolEntry.objects.exists()


@pytest.mark.parametrize(
    "data",
    [
        {"step": "do"},
        {"step": "do", "content": "%%%"},
        {"step": "do", "content": "e30="},
        {"step": "try"},
        {"step": "x"},
        {
            "step": "do",
            "content": base64.b64encode(
                b'{"format": "groundwork.tools", "version": 1, "entries": [{"name": "x"}]}'
            ).decode(),
            "digest": "0",
        },
    ],
    ids=lambda d: re.sub(r"\W+", "-", str(d))[:40],
)
def test_odd_requests_for_an_import_do_nothing(cast: Cast, owner: Client, data: dict[str, Any]) -> None:
    assert owner.post(url("exchange"), data).status_code == 200
    with tenant_scope(cast.tenant.pk):
        assert not ToolEntry.objects.exists()
