"""What the scopes of an API key stand for."""

from __future__ import annotations

import pytest
from django.test import Client

from basics.errors import Denied
from tenancy.actors import Actor
from tenancy.permissions import expand_scopes
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast


def test_every_right_of_a_noun_but_those_that_must_be_named():
    assert expand_scopes(["tool.*"]) == {"tool.run"}
    assert expand_scopes(["tool.*", "tool.manage"]) == {"tool.run", "tool.manage"}
    assert expand_scopes(["collection.*"]) == {"collection.read", "collection.write", "collection.delete"}


@pytest.mark.parametrize("scope", ["member.manage", "tool", "tool.", "*", "none.*"])
def test_unknown_scope_is_refused(scope: str):
    with pytest.raises(ValueError, match="unknown scope"):
        expand_scopes([scope])


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("run.read", "It needs the scope “run.read”, and"),
        ("tool.manage", "It needs the scope “tool.manage” (“tool.*” does not include it), and"),
        ("member.manage", "reserved for people"),
    ],
)
def test_refusal_names_the_scope_that_a_key_lacks(action: str, said: str):
    with pytest.raises(Denied) as refused:
        Actor("api_key", 1, frozenset()).require(action)
    assert said in refused.value.message


def test_rest_names_the_right_that_is_missing(client: Client, cast: Cast):
    with tenant_scope(cast.tenant.pk):
        _, key = api_key_create(
            tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=["search.run"]
        )
    answer = client.get("/api/v1/tool-grants", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.json()["details"]) == (403, {"action": "tool.manage"})
    assert "“tool.manage”" in answer.json()["message"]
