"""Sources in the admin, with their versions, credentials and tests: nothing of another workspace is met."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from apps.tools.models import ContractTest, ToolCredential, ToolEntry, ToolSource, ToolVersion
from apps.tools.sources.credentials import credential_set
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.tools.admin.support import CANARY, ENTRY, GRANT, make_source, make_version, trail, url, who

pytestmark = pytest.mark.django_db


def rows_of(source: ToolSource, **rows: Any) -> dict[str, Any]:
    counts = {f"{p}-{n}_FORMS": "0" for p in ("credentials", "contract_tests") for n in ("TOTAL", "INITIAL")}
    own = {
        "title": source.title,
        "url": source.url,
        "document_url": source.document_url,
        "document": "",
        "settings": "{}",
        "allowed_hosts": "",
        "is_enabled": "on",
    }
    return {**counts, **own, **rows}


def test_credential_goes_in_and_never_comes_out(cast: Cast, owner: Client, operator: Client) -> None:
    source = make_source(cast)
    data = rows_of(
        source,
        **{
            "credentials-TOTAL_FORMS": "1",
            "credentials-0-placement": "bearer",
            "credentials-0-parameter": "",
            "credentials-0-secret": CANARY,
        },
    )
    page = owner.post(url("toolsource_change", source.pk), data)
    assert page.status_code == 302, page.context["errors"]
    with tenant_scope(cast.tenant.pk):
        row = ToolCredential.objects.get()
        assert row.last_four == CANARY[-4:]
        assert CANARY not in json.dumps(list(AuditEvent.objects.values_list("data", flat=True)))
    for client in (owner, operator):
        for address in (
            url("toolsource_change", source.pk),
            url("toolsource_history", source.pk),
            url("toolsource_changelist"),
        ):
            text = client.get(address).content.decode()
            assert CANARY not in text
            assert "secret_encrypted" not in text
    assert f"ends in {CANARY[-4:]}" in owner.get(url("toolsource_change", source.pk)).content.decode()
    # A refused form does not echo it either.
    bad = {**data, "credentials-0-parameter": "not here"}
    assert CANARY not in owner.post(url("toolsource_change", source.pk), bad).content.decode()
    gone = {
        **rows_of(source),
        "credentials-TOTAL_FORMS": "1",
        "credentials-INITIAL_FORMS": "1",
        "credentials-0-id": row.pk,
        "credentials-0-DELETE": "on",
    }
    assert owner.post(url("toolsource_change", source.pk), gone).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert not ToolCredential.objects.exists()


def test_inline_rows_of_another_workspace_are_not_reached(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    theirs = make_source(cast)
    secret = credential_set(**who(cast), source=theirs.pk, placement="bearer", secret=CANARY)
    with tenant_scope(cast.other_tenant.pk):
        own = ToolSource.objects.create(
            tenant=cast.other_tenant, kind="openapi", name="own", url="https://own.example.org"
        )
    for change in (
        {"credentials-0-DELETE": "on"},
        {"credentials-0-secret": "taken-over-0000", "credentials-0-placement": "bearer"},
        {"credentials-0-source": theirs.pk, "credentials-0-secret": "taken-over-0000"},
    ):
        data = rows_of(
            own,
            **{
                "credentials-TOTAL_FORMS": "1",
                "credentials-INITIAL_FORMS": "1",
                "credentials-0-id": secret.pk,
                **change,
            },
        )
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
        owner.post(url("toolsource_changelist"), {"action": action, "_selected_action": [source.pk]})
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
    answer = owner.post(url("toolversion_changelist"), {"action": "accept", "_selected_action": [new.pk]})
    address = answer.headers["Location"]
    page = owner.get(address)
    assert [v.pk for v, _ in page.context["shown"]] == [new.pk]
    for ids in (str(new.pk), f"{new.pk},{old.pk}"):
        for do in ("accept", "reject"):
            assert outsider.get(url("decide", ids=ids, do=do)).status_code == 404
            assert outsider.post(url("decide", ids=ids, do=do)).status_code == 404
    for odd in (
        {"ids": "", "do": "accept"},
        {"ids": "x"},
        {"ids": new.pk, "do": "eat"},
        {"ids": "999999999", "do": "accept"},
    ):
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
    assert "is no longer waiting" in again.content.decode()


def test_contract_tests_are_attached_at_the_source_and_only_shown_elsewhere(
    cast: Cast, owner: Client, outsider: Client
) -> None:
    source = make_source(cast)
    make_version(source)
    row = {
        "contract_tests-TOTAL_FORMS": "1",
        "contract_tests-0-tool_name": "crm_find",
        "contract_tests-0-name": "finds",
        "contract_tests-0-arguments": "{}",
        "contract_tests-0-expected": '{"type": "object"}',
    }
    page = owner.post(url("toolsource_change", source.pk), rows_of(source, **row))
    assert page.status_code == 302
    with tenant_scope(cast.tenant.pk):
        test = ContractTest.objects.get()
    bad = rows_of(source, **{**row, "contract_tests-0-tool_name": "nothing", "contract_tests-0-name": "b"})
    assert owner.post(url("toolsource_change", source.pk), bad).status_code == 200
    answer = owner.post(url("contracttest_changelist"), {"action": "run", "_selected_action": [test.pk]})
    assert owner.get(answer.headers["Location"]).status_code == 200
    assert outsider.get(url("run_tests", ids=test.pk)).status_code == 404
    assert outsider.post(url("run_tests", ids=test.pk)).status_code == 404
    assert owner.get(url("contracttest_add")).status_code == 403


def test_superuser_names_the_workspace_of_a_new_row(cast: Cast, operator: Client) -> None:
    assert operator.get(url("toolentry_add")).context["tenants"]
    assert operator.get(url("toolgrant_add", tenant=cast.tenant.pk)).status_code == 200
    data = {**ENTRY, "name": "calculate", "tenant": cast.tenant.pk}
    assert operator.post(url("toolentry_add", tenant=cast.tenant.pk), data).status_code == 302
    assert operator.post(url("toolgrant_add"), {**GRANT, "tenant": cast.tenant.pk}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        assert ToolEntry.objects.count() == 1
        assert AuditEvent.objects.filter(action="tool_entry.set").get().actor_name == "root@example.org"
