"""What Postgres cannot store is refused in words, whoever sends it."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.permissions.cells import cell_set
from apps.tools.permissions.services import grant_create
from basics.errors import Invalid
from tests.cast import Cast

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("field", ["target", "note"])
def test_rule_with_a_nul_is_refused(cast: Cast, field: str) -> None:
    given: dict[str, Any] = {"target": "look", field: "a\x00b"}
    with pytest.raises(Invalid) as caught:
        grant_create(
            tenant=cast.tenant, actor=cast.actor("owner"), effect="allow", target_kind="tool", **given
        )
    assert list(caught.value.data["fields"]) == [field]


@pytest.mark.parametrize("field", ["target", "subject", "target_kind"])
def test_cell_with_a_nul_is_refused(cast: Cast, field: str) -> None:
    given: dict[str, Any] = {
        "target_kind": "tool",
        "target": "look",
        "subject_kind": "role",
        "subject": "viewer",
    }
    given[field] = "a\x00b"
    with pytest.raises(Invalid) as caught:
        cell_set(tenant=cast.tenant, actor=cast.actor("owner"), effect="deny", **given)
    assert list(caught.value.data["fields"]) == [field]
