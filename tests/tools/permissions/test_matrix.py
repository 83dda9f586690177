"""The permission matrix: effects as the engine decides them, a cell changed in one step and taken back, grants in words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.tools.catalog.selectors import catalog_read
from apps.tools.catalog.services import entry_set
from apps.tools.models import ToolGrant
from apps.tools.permissions.cells import cell_set
from apps.tools.permissions.dry_run import access_explain, call_try
from apps.tools.permissions.matrix import Cell, permission_matrix
from apps.tools.permissions.services import grant_create, grants_change
from apps.tools.permissions.subjects import subject_columns, subjects_read
from apps.tools.policy.engine import ToolFacts
from apps.tools.policy.sentences import Names, condition_words, grant_sentence
from apps.tools.toolkits.services import toolkit_set
from apps.tools.toolset.selectors import grant_list
from basics.errors import Denied, Invalid, Missing
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import make_collection

pytestmark = pytest.mark.django_db
READS = ToolFacts("read_it", "crm.contacts", False)
WRITES = ToolFacts("write_it", "crm.contacts", True)


@pytest.fixture(autouse=True)
def _inside(cast: Cast) -> Any:
    with tenant_scope(cast.tenant.pk):
        yield


def who(cast: Cast, role: str = "owner") -> Any:
    return {"tenant": cast.tenant, "actor": cast.actor(role)}


def cells(cast: Cast, target: str = "write_it", **values: Any) -> dict[str, Cell]:
    """Return the cells of one row by the subject of their column."""
    matrix = permission_matrix(
        actor=cast.actor("owner"), groups={"crm": [READS, WRITES]}, tools=[READS, WRITES], **values
    )
    row = next(r for r in matrix.rows if r.target == target)
    return {c.column.subject: c for c in row.cells}


def effects(cast: Cast, target: str = "write_it", **values: Any) -> dict[str, str]:
    return {subject: cell.effect for subject, cell in cells(cast, target, **values).items()}


def test_cell_shows_what_the_engine_decides_and_who_decided(cast: Cast) -> None:
    allow = grant_create(**who(cast), effect="allow", target_kind="group", target="crm", calls="read_only")
    deny = grant_create(
        **who(cast),
        effect="deny",
        target_kind="tool",
        target="read_it",
        subject_kind="role",
        subject="viewer",
    )
    assert effects(cast, "read_it") == {
        "": "allow",
        "viewer": "deny",
        "member": "allow",
        "admin": "allow",
        "owner": "allow",
    }
    assert set(effects(cast).values()) == {"deny"}
    group = cells(cast, "crm")
    assert (group["viewer"].effect, group["member"].effect) == ("deny", "mixed")
    assert group["member"].counts == {"allow": 1, "deny": 1}
    found = cells(cast, "read_it")
    assert found["viewer"].rule == deny
    assert found["viewer"].own == "deny"
    assert found["member"].rule == allow
    assert found["member"].own == ""


def test_one_click_replaces_what_the_cell_stated_and_nothing_else(cast: Cast) -> None:
    kept = grant_create(
        **who(cast),
        effect="allow",
        target_kind="tool",
        target="write_it",
        note="not of a cell",
        subject_kind="role",
        subject="member",
        arguments=[{"kind": "at_most", "argument": "n", "value": 5}],
    )
    cell: Any = {"target_kind": "tool", "target": "write_it", "subject_kind": "role", "subject": "member"}
    before = ToolGrant.objects.count()
    for effect in ("allow", "deny", "ask", "ask"):
        change = cell_set(**who(cast), **cell, effect=effect)
        assert cells(cast)["member"].own == effect
        assert ToolGrant.objects.count() == before + 1
    assert change.added == []
    assert change.removed == []
    assert cells(cast)["member"].has_conditions
    undone = cell_set(**who(cast), **cell, effect="")
    assert cells(cast)["member"].own == ""
    assert ToolGrant.objects.filter(pk=kept.pk).exists()
    grants_change(**who(cast), remove=[], add=undone.removed)
    assert cells(cast)["member"].own == "ask"


def test_stronger_rule_stands_above_what_a_cell_states(cast: Cast) -> None:
    deny = grant_create(**who(cast), effect="deny", target_kind="group", target="crm")
    cell_set(
        **who(cast),
        target_kind="tool",
        target="read_it",
        subject_kind="role",
        subject="owner",
        effect="allow",
    )
    owner = cells(cast, "read_it")["owner"]
    assert (owner.own, owner.effect, owner.rule) == ("allow", "deny", deny)


def test_cell_of_a_collection_is_another_cell(cast: Cast) -> None:
    one = make_collection(cast.tenant)
    cell: Any = {"target_kind": "tool", "target": "read_it", "subject_kind": "everyone", "subject": ""}
    cell_set(**who(cast), **cell, effect="allow")
    cell_set(**who(cast), **cell, effect="deny", collection=one.pk)
    assert effects(cast, "read_it")["viewer"] == "allow"
    assert effects(cast, "read_it", collection=one.pk)["viewer"] == "deny"


def test_columns_of_a_key_are_those_that_decide_about_it(cast: Cast) -> None:
    key, _ = api_key_create(**who(cast, "admin"), name="Nightly", scopes=["tool.run"])
    subjects = subjects_read(actor=cast.actor("owner"))
    columns = subject_columns(actor=cast.actor("owner"), value=f"api_key:{key.pk}", subjects=subjects)
    assert [c.kind for c in columns] == ["everyone", "role", "member", "api_key"]
    assert columns[-1].caller.role == "admin"
    assert columns[-1].label == "Nightly"
    grant_create(
        **who(cast),
        effect="allow",
        target_kind="tool",
        target="read_it",
        subject_kind="api_key",
        subject=str(key.pk),
    )
    assert effects(cast, "read_it", columns=columns)[str(key.pk)] == "allow"


def test_only_managers_see_or_change_the_matrix(cast: Cast) -> None:
    with pytest.raises(Denied):
        permission_matrix(actor=cast.actor("member"), groups={})
    with pytest.raises(Denied):
        cell_set(
            **who(cast, "member"), target_kind="tool", target="x", subject_kind="everyone", effect="allow"
        )
    with pytest.raises(Invalid):
        cell_set(**who(cast), target_kind="tool", target="x", subject_kind="everyone", effect="maybe")


def test_grant_reads_as_a_sentence(cast: Cast) -> None:
    kit = toolkit_set(**who(cast), name="Money", tools=["pay"])
    about = make_collection(cast.tenant, "Letters")
    grant_create(
        **who(cast),
        effect="ask",
        target_kind="toolkit",
        toolkit=kit.pk,
        subject_kind="member",
        subject=str(cast.viewer.user_id),
        collection=about.pk,
        arguments=[
            {"kind": "below", "argument": "amount", "value": 100},
            {"kind": "select_only", "argument": "sql"},
        ],
    )
    row = grant_list(actor=cast.actor("owner")).last()
    assert row is not None
    sentence = grant_sentence(row, subjects_read(actor=cast.actor("owner")).names)
    email = cast.user("viewer").email
    assert sentence == (
        f"{email} can call the tools of the toolkit “Money”, about "
        "“Letters”, if amount is below 100 and sql is a single SQL statement that only reads, "
        "after confirming each call."
    )
    assert "denies" in condition_words({"kind": "from the future"})
    assert "denies" in condition_words(7)
    row.subject = "999999"
    assert "has left" in grant_sentence(row, Names())


def test_dry_run_tells_what_somebody_can_see_and_do(cast: Cast) -> None:
    collection = make_collection(cast.tenant, "Letters")
    deny = grant_create(
        **who(cast),
        effect="deny",
        target_kind="tool",
        target="calculate",
        subject_kind="role",
        subject="viewer",
    )
    entry_set(**who(cast), name="date_info", is_enabled=False)
    found = access_explain(actor=cast.actor("owner"), subject=f"member:{cast.viewer.user_id}")
    tools = {t.name: t for t in found.tools}
    assert (tools["calculate"].decision.effect, tools["calculate"].decision.rule) == ("deny", deny.pk)
    assert found.rules[deny.pk].startswith("Viewers can't call “calculate”")
    assert "switched off" in tools["date_info"].decision.why
    assert [(c.id, c.documents, c.limited) for c in found.collections] == [(collection.pk, 0, 0)]
    assert access_explain(actor=cast.actor("viewer")).collections[0].limited is None
    by_role = {
        t.name: t.decision.effect
        for t in access_explain(actor=cast.actor("owner"), subject="role:viewer").tools
    }
    assert by_role == {name: t.decision.effect for name, t in tools.items()}


def test_dry_run_about_others_is_for_managers_and_this_workspace(cast: Cast) -> None:
    me, outsider = cast.viewer.user_id, cast.outsider.user_id
    assert access_explain(actor=cast.actor("viewer"), subject=f"member:{me}").subject == cast.actor("viewer")
    for subject in (f"member:{cast.owner.user_id}", "role:viewer", "api_key:1"):
        with pytest.raises(Denied):
            access_explain(actor=cast.actor("member"), subject=subject)
    with pytest.raises(Missing):
        access_explain(actor=cast.actor("owner"), subject=f"member:{outsider}")
    for subject in ("everyone:", "member:x", "member:", "role:king", "x", "member:99999999999999999999"):
        with pytest.raises(Invalid):
            access_explain(actor=cast.actor("owner"), subject=subject)


def test_call_is_tried_without_running_it(cast: Cast) -> None:
    actor = cast.actor("owner")
    grant_create(
        **who(cast),
        effect="deny",
        target_kind="tool",
        target="calculate",
        note="no powers",
        arguments=[{"kind": "matches", "argument": "expression", "value": r".*\*\*.*"}],
    )
    fine = call_try(actor=actor, tool="calculate", arguments={"expression": "1+1"})
    assert (fine.decision.effect, fine.problems) == ("allow", [])
    bad = call_try(actor=actor, tool="calculate", arguments={"expression": "2**9"}, subject="role:viewer")
    assert bad.decision.effect == "deny"
    assert "no powers" in bad.decision.why
    assert "expression matches" in bad.rule
    assert call_try(actor=actor, tool="calculate", arguments={}).problems
    with pytest.raises(Missing):
        call_try(actor=actor, tool="nothing", arguments={})


def test_collections_that_grants_name_are_told_apart_in_the_catalog(cast: Cast) -> None:
    one, _ = make_collection(cast.tenant), make_collection(cast.tenant)
    grant_create(**who(cast), effect="deny", target_kind="tool", target="calculate", collection=one.pk)
    listed = next(t for t in catalog_read(actor=cast.actor("member")) if t.name == "calculate")
    assert (listed.decision.effect, listed.elsewhere) == ("deny", "allow")


def test_page_changes_a_cell_and_takes_it_back(cast: Cast) -> None:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(cast.user("admin"), "django.contrib.auth.backends.ModelBackend")
    slug, before = cast.tenant.slug, set(ToolGrant.objects.values_list("pk", flat=True))
    send = {"cell": "tool|calculate|role|viewer|deny"}
    page = client.post(reverse("tools:permission-set", args=[slug]), send).content.decode()
    assert "Set to deny" in page
    undo = re.search(r'name="undo" value="([^"]+)"', page)
    assert undo is not None
    assert ToolGrant.objects.count() == len(before) + 1
    url = reverse("tools:permission-undo", args=[slug])
    assert client.post(url, {"undo": undo[1]}).status_code == 200
    assert set(ToolGrant.objects.values_list("pk", flat=True)) == before
    assert client.post(url, {"undo": undo[1]}).status_code == 404  # it is gone already
    assert client.post(url, {"undo": f"{undo[1]}x"}).status_code == 400
