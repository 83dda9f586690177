"""What the scopes of an API key stand for."""

from __future__ import annotations

import pytest

from tenancy.permissions import expand_scopes


def test_every_right_of_a_noun_but_those_that_must_be_named():
    assert expand_scopes(["tool.*"]) == {"tool.run"}
    assert expand_scopes(["tool.*", "tool.manage"]) == {"tool.run", "tool.manage"}
    assert expand_scopes(["collection.*"]) == {
        "collection.read",
        "collection.write",
        "collection.delete",
    }


@pytest.mark.parametrize("scope", ["member.manage", "tool", "tool.", "*", "none.*"])
def test_unknown_scope_is_refused(scope: str):
    with pytest.raises(ValueError, match="unknown scope"):
        expand_scopes([scope])
