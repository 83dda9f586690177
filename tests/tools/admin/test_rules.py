"""Rules in the admin, as a list and as a matrix: refusals stand at their fields, nothing of another workspace is met."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create
from apps.tools.toolkits.services import toolkit_set
from tenancy.models import ApiKey
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.factories import make_collection
from tests.tools.admin.support import GRANT, trail, url, who

pytestmark = pytest.mark.django_db


def test_rule_says_in_words_what_it_does(cast: Cast, owner: Client) -> None:
    viewer = f"member:{cast.user('viewer').pk}"
    conditions = json.dumps([{"kind": "at_most", "argument": "amount", "value": 100}])
    data = {**GRANT, "effect": "ask", "who": viewer, "arguments": conditions}
    assert owner.post(url("toolgrant_add"), data).status_code == 302
    with tenant_scope(cast.tenant.pk):
        row = ToolGrant.objects.get(target="pay")
    assert (row.subject_kind, row.subject) == ("member", str(cast.user("viewer").pk))
    for page in (owner.get(url("toolgrant_changelist")), owner.get(url("toolgrant_change", row.pk))):
        text = page.content.decode()
        assert cast.user("viewer").email in text
        assert "amount is at most 100" in text


def test_rule_that_asks_says_who_decides(cast: Cast, owner: Client) -> None:
    admin = cast.user("admin")
    for target, approver in (("own", "self:"), ("second", "role:admin"), ("one", f"member:{admin.pk}")):
        data = {**GRANT, "effect": "ask", "target": target, "decides": approver}
        assert owner.post(url("toolgrant_add"), data).status_code == 302
    listed = owner.get(url("toolgrant_changelist")).content.decode()
    with tenant_scope(cast.tenant.pk):
        rows = {row.target: row.pk for row in ToolGrant.objects.all()}
    for target, said in (
        ("own", "“own”, after confirming each call"),
        ("second", "“second”, after an admin or owner approves each call"),
        ("one", f"“one”, after {admin.email} approves each call"),
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
        ("arguments", '[{"kind": "sometimes"}]', "no condition of kind"),
        ("arguments", "{", "valid JSON"),
        ("arguments", "{}", "list"),
        ("target", "", "Name the tool"),
        ("expires_at_0", "2001-01-01", "in the past"),
    ],
)
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
    kit = toolkit_set(**who(cast), name="Coffers", tools=["pay"])
    collection = make_collection(cast.tenant, "Handbook")
    with tenant_scope(cast.tenant.pk):
        key = ApiKey.objects.create(tenant=cast.tenant, name="Robot", prefix="gw_x", secret_sha256="0" * 64)
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
    for secret in ("Handbook", "Coffers", "Robot", cast.user("viewer").email, cast.tenant.name):
        assert secret not in text
    with platform_scope():
        assert not ToolGrant.objects.filter(target="pay").exists()


def cell(page: Any, target: str, column: str) -> Any:
    row = next(r for r in page.context["rows"] if r["row"].target == target)
    return next(c for c in row["cells"] if c["column"] == column)["cell"]


def test_matrix_shows_and_sets_cells(cast: Cast, owner: Client) -> None:
    page = owner.get(url("matrix"))
    assert cell(page, "calculate", "role:member").effect == "allow"
    data = {
        "row": ["tool|calculate", "tool|date_add"],
        "column": ["role:viewer", "role:member"],
        "effect": "deny",
    }
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
        {},
        {"effect": "allow"},
        {"effect": "allow", "row": "tool|x"},
        {"effect": "x", "row": "tool|x", "column": "role:viewer"},
        {"effect": "allow", "row": "x", "column": "role:viewer"},
        {"effect": "allow", "row": "tool|x", "column": "role:god"},
        {"effect": "allow", "row": "tool|x", "column": "member:1"},
        {"effect": "allow", "row": "tool|x", "column": "member:x"},
        {"effect": "allow", "row": [f"tool|x{i}" for i in range(501)], "column": "role:viewer"},
        {"effect": "allow", "row": "toolkit|1", "column": "role:viewer"},
        {"effect": "allow", "row": "tool|a\x00b", "column": "role:viewer"},
    ],
    ids=lambda d: re.sub(r"\W+", "-", str(d))[:40],
)
def test_matrix_refuses_in_words_and_changes_nothing(cast: Cast, owner: Client, data: dict[str, Any]) -> None:
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
    person, collection = f"member:{cast.user('viewer').pk}", make_collection(cast.tenant, "Handbook").pk
    grant_create(**who(cast), effect="deny", target_kind="tool", target="calculate", note="ours")
    page = outsider.get(url("matrix", tenant=cast.tenant.pk))
    assert cell(page, "calculate", "role:viewer").effect == "allow"  # the outsider's own
    outsider.post(
        url("matrix", tenant=cast.tenant.pk),
        {"tenant": cast.tenant.pk, "row": "tool|calculate", "column": person, "effect": "allow"},
    )
    outsider.post(
        url("matrix", collection=collection),
        {"row": "tool|calculate", "column": "role:viewer", "effect": "allow"},
    )
    assert "Handbook" not in outsider.get(url("matrix")).content.decode()
    with platform_scope():
        assert ToolGrant.objects.filter(target="calculate").count() == 1
    assert operator.get(url("matrix")).context["tenants"]
    page = operator.get(url("matrix", tenant=cast.tenant.pk))
    assert cell(page, "calculate", "role:viewer").effect == "deny"
    operator.post(
        url("matrix", tenant=cast.tenant.pk),
        {"row": "tool|date_add", "column": "role:viewer", "effect": "ask"},
    )
    with tenant_scope(cast.tenant.pk):
        assert ToolGrant.objects.filter(target="date_add").count() == 1
    for odd in ("0", "x", "9" * 30):
        assert operator.get(url("matrix", tenant=odd)).status_code == 404
