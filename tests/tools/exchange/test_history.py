"""History and revert: what was stated earlier is brought back by the same services, within one workspace."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.catalog.services import FIELDS as ENTRY_FIELDS
from apps.tools.catalog.services import entry_delete, entry_set
from apps.tools.exchange.history import change_list, fields_changed
from apps.tools.exchange.restoring import state_restore
from apps.tools.models import ToolEntry, ToolGrant, Toolkit
from apps.tools.permissions.services import grant_create, grant_delete, grant_terms
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db
GRANT: Any = {"target_kind": "tool", "target": "pay"}


def who(cast: Cast, role: str = "owner") -> Any:
    tenant = cast.other_tenant if role == "outsider" else cast.tenant
    return {"tenant": tenant, "actor": cast.actor(role)}


def changes(cast: Cast, kind: str, role: str = "owner", **narrow: Any) -> Any:
    with tenant_scope(who(cast, role)["tenant"].pk):
        return change_list(actor=cast.actor(role), kind=f"tools.{kind}", **narrow)


def test_terms_name_every_field_of_their_rows() -> None:
    """A field that is left out would be lost by every revert and every export."""
    own = {"id", "tenant", "created_at", "updated_at"}
    grant = {f.name for f in ToolGrant._meta.concrete_fields} - own
    assert set(grant_terms(ToolGrant())) == grant
    assert {*ENTRY_FIELDS, "name"} == {f.name for f in ToolEntry._meta.concrete_fields} - own


def test_entry_is_brought_back_after_changes_and_after_its_removal(cast: Cast) -> None:
    entry_set(**who(cast), name="calculate", title="Sums", tags=["money"])
    row = entry_set(**who(cast), name="calculate", title="Numbers", timeout_s=5)
    entry_delete(**who(cast), pk=row.pk)
    removed, changed, made = changes(cast, "toolentry", name="calculate")
    assert [c.verb for c in (removed, changed, made)] == ["removed", "changed", "made"]
    assert [(f.name, f.before, f.after) for f in changed.fields] == [
        ("title", "Sums", "Numbers"),
        ("timeout_s", "", "5"),
    ]
    for change, title in ((removed, "Numbers"), (made, "Sums")):
        state_restore(**who(cast), event=change.event)
        with tenant_scope(cast.tenant.pk):
            found = ToolEntry.objects.get(name="calculate")
        assert (found.title, found.tags) == (title, ["money"])
    with pytest.raises(Conflict, match="current state"):
        state_restore(**who(cast), event=made.event)
    with tenant_scope(cast.tenant.pk):
        last = AuditEvent.objects.order_by("pk").last()
        assert last is not None
        assert (last.action, last.data["event"]) == ("tool_history.restore", made.event)


def test_toolkit_comes_back_with_its_tools(cast: Cast) -> None:
    kit = toolkit_set(**who(cast), name="Money", tools=["pay", "charge"], description="d")
    toolkit_delete(**who(cast), pk=kit.pk)
    state_restore(**who(cast), event=changes(cast, "toolkit")[0].event)
    with tenant_scope(cast.tenant.pk):
        found = Toolkit.objects.get(name="Money")
        assert sorted(m.tool_name for m in found.members.all()) == ["charge", "pay"]
        assert found.description == "d"


def test_rule_takes_the_place_of_the_one_that_replaced_it(cast: Cast) -> None:
    first = grant_create(**who(cast), effect="ask", note="first", **GRANT)
    grant_delete(**who(cast), pk=first.pk)
    second = grant_create(**who(cast), effect="allow", replaces=first.pk, **GRANT)
    found = changes(cast, "toolgrant", object_id=str(second.pk))
    assert [c.object_id for c in found] == [str(second.pk), str(first.pk), str(first.pk)]
    state_restore(**who(cast), event=found[-1].event)
    with tenant_scope(cast.tenant.pk):
        (row,) = ToolGrant.objects.filter(target="pay")
        assert (row.effect, row.note) == ("ask", "first")
    state_restore(**who(cast), event=found[0].event)
    with tenant_scope(cast.tenant.pk):
        assert [r.effect for r in ToolGrant.objects.filter(target="pay")] == ["allow"]


def test_rule_whose_end_has_passed_or_whose_toolkit_is_gone_is_refused_in_words(cast: Cast) -> None:
    kit = toolkit_set(**who(cast), name="Money", tools=["pay"])
    row = grant_create(**who(cast), effect="deny", target_kind="toolkit", toolkit=kit.pk)
    grant_delete(**who(cast), pk=row.pk)
    toolkit_delete(**who(cast), pk=kit.pk)
    with pytest.raises(Missing, match="toolkit"):
        state_restore(**who(cast), event=changes(cast, "toolgrant")[0].event)
    with tenant_scope(cast.tenant.pk):
        event = AuditEvent.objects.filter(action="tool_grant.delete").get()
        state = {**event.data["before"], "expires_at": "2020-01-01T00:00:00+00:00", "toolkit": None}
        past = AuditEvent.objects.create(
            tenant=cast.tenant,
            actor_kind="user",
            action="tool_grant.delete",
            object_type="tools.toolgrant",
            object_id="999999",
            data={"before": {**state, **GRANT}, "after": None},
        )
    with pytest.raises(Invalid, match="in the past"):
        state_restore(**who(cast), event=past.pk)


def test_change_of_another_workspace_does_not_exist(cast: Cast) -> None:
    entry_set(**who(cast), name="calculate", title="Ours")
    event = changes(cast, "toolentry")[0].event
    assert changes(cast, "toolentry", "outsider") == []
    with pytest.raises(Missing):
        state_restore(**who(cast, "outsider"), event=event)
    for role in ("member", "viewer"):
        with pytest.raises(Denied):
            state_restore(**who(cast, role), event=event)
    with tenant_scope(cast.tenant.pk):
        other = AuditEvent.objects.exclude(action__startswith="tool").first()
    if other is not None:
        with pytest.raises(Missing):
            state_restore(**who(cast), event=other.pk)


def test_event_without_a_kept_state_is_told_apart(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        old = AuditEvent.objects.create(
            tenant=cast.tenant,
            actor_kind="user",
            action="tool_entry.set",
            object_type="tools.toolentry",
            object_id="1",
            object_name="calculate",
            data={"fields": ["title"]},
        )
    with pytest.raises(Conflict, match="no stored state"):
        state_restore(**who(cast), event=old.pk)


def test_fields_that_mean_the_same_are_no_change() -> None:
    assert fields_changed({"a": None, "b": []}, {"a": "", "b": [], "c": False}) == fields_changed(
        {}, {"c": False}
    )
