"""What the audit trail keeps of entries, toolkits and rules: what was stated before, and after."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.catalog.services import entry_delete, entry_set
from apps.tools.models import ToolEntry
from apps.tools.permissions.services import grant_create, grant_delete, grant_terms
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from basics.errors import Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def who(cast: Cast, role: str = "owner") -> Any:
    return {"tenant": cast.tenant, "actor": cast.actor(role)}


def trail(cast: Cast, prefix: str) -> list[tuple[str, Any, Any]]:
    with tenant_scope(cast.tenant.pk):
        rows = AuditEvent.objects.filter(action__startswith=prefix).order_by("pk")
        return [(r.action, r.data["before"], r.data["after"]) for r in rows]


def test_entry_keeps_both_sides_of_a_change(cast: Cast) -> None:
    entry_set(**who(cast), name="calculate", title="Sums")
    row = entry_set(**who(cast), name="calculate", is_enabled=False)
    entry_delete(**who(cast), pk=row.pk)
    (_, none, first), (_, before, after), (last, gone, nothing) = trail(cast, "tool_entry.")
    assert (none, first["title"], first["is_enabled"]) == (None, "Sums", True)
    assert (before, after) == (first, {**first, "is_enabled": False})
    assert (last, gone, nothing) == ("tool_entry.delete", after, None)
    with tenant_scope(cast.tenant.pk):
        assert not ToolEntry.objects.exists()
    with pytest.raises(Missing):
        entry_delete(**who(cast), pk=row.pk)


def test_toolkit_keeps_its_tools(cast: Cast) -> None:
    toolkit_set(**who(cast), name="Money", tools=["pay", "charge"], description="d")
    kit = toolkit_set(**who(cast), name="Money", tools=["pay"])
    toolkit_delete(**who(cast), pk=kit.pk)
    found = [(b and b["tools"], a and a["tools"]) for _, b, a in trail(cast, "toolkit.")]
    assert found == [(None, ["charge", "pay"]), (["charge", "pay"], ["pay"]), (["pay"], None)]


def test_rule_keeps_what_it_said(cast: Cast) -> None:
    old = grant_create(**who(cast), effect="allow", target_kind="tool", target="pay", note="n")
    grant_delete(**who(cast), pk=old.pk)
    new = grant_create(**who(cast), effect="deny", target_kind="tool", target="pay", replaces=old.pk)
    (_, none, given), (_, taken, nothing), (_, _, last) = trail(cast, "tool_grant.")
    assert (none, nothing) == (None, None)
    assert given == taken == grant_terms(old)
    assert last["effect"] == "deny"
    with tenant_scope(cast.tenant.pk):
        assert AuditEvent.objects.get(object_id=str(new.pk)).data["replaces"] == old.pk
