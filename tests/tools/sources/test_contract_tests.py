"""Contract tests keep a version of a tool out until it answers as it should."""

from __future__ import annotations

from typing import Any

import pytest

from apps.tools.models import ContractTest
from apps.tools.sources import contract_tests
from apps.tools.sources.selectors import (
    contract_test_list,
)
from basics.errors import Conflict, Invalid
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.tools.sources.shop import Shop, accept, audited, create, states

pytestmark = pytest.mark.django_db(transaction=True)


def set_test(cast: Cast, **fields: Any) -> ContractTest:
    values = {
        "tool_name": "shop_get",
        "name": "One lamp",
        "arguments": {"id": 1},
        "expected": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
        **fields,
    }
    return contract_tests.contract_test_set(tenant=cast.tenant, actor=cast.actor("admin"), **values)


def test_failing_contract_test_keeps_a_version_out_unless_forced(cast: Cast, shop: Shop) -> None:
    create(cast)
    set_test(cast)
    shop.answer = {"id": "one"}
    with pytest.raises(Conflict) as refused:
        accept(cast)
    assert refused.value.code == "contract_tests_failed"
    (failure,) = refused.value.data["failures"]
    assert "expected integer" in failure["problem"]
    assert (failure["tool"], failure["version"]) == ("shop_get", 1)
    assert states(cast) == ["shop_get v1 waiting", "shop_list v1 waiting"]
    with tenant_scope(cast.tenant.pk):
        (row,) = contract_test_list(actor=cast.actor("admin"))
    assert (row.last_outcome, row.last_version) == ("failed", 1)
    accept(cast, force=True)
    assert states(cast) == ["shop_get v1 current", "shop_list v1 current"]
    (event,) = audited(cast, "tool_version.accept")
    assert event["forced"] is True
    assert event["failed_tests"] == ["One lamp"]


def test_passing_contract_test_lets_a_version_in(cast: Cast, shop: Shop) -> None:
    create(cast)
    test = set_test(cast)
    accept(cast)
    assert audited(cast, "tool_version.accept")[0]["forced"] is False
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert (ran.last_outcome, ran.last_problem, ran.last_version) == ("passed", "", 1)
    shop.answer = "no JSON at all"
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert ran.last_outcome == "failed"
    contract_tests.contract_test_delete(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert len(audited(cast, "contract_test.run")) == 3


def test_contract_test_with_wrong_arguments_fails_with_words(cast: Cast, shop: Shop) -> None:
    create(cast)
    test = set_test(cast, arguments={"id": "x"})
    ran = contract_tests.contract_test_run(tenant=cast.tenant, actor=cast.actor("admin"), pk=test.pk)
    assert ran.last_outcome == "failed"
    assert "integer" in ran.last_problem


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", "n" * 81),
        ("arguments", [1]),
        ("expected", {"type": 5}),
        ("expected", {"type": "string", "pattern": "(a+)+$"}),
        ("expected", {"$ref": "https://evil.example.org/x"}),
        ("expected", {"properties": {"a": {"patternProperties": {"(a+)+$": {}}}}}),
    ],
)
def test_contract_test_that_cannot_be_used_is_refused(cast: Cast, shop: Shop, field: str, value: Any) -> None:
    create(cast)
    with pytest.raises(Invalid) as refused:
        set_test(cast, **{field: value})
    assert list(refused.value.data["fields"]) == [field]


def test_contract_test_may_speak_of_a_pattern_that_is_a_name(cast: Cast, shop: Shop) -> None:
    create(cast)
    set_test(cast, expected={"properties": {"pattern": {"type": "string"}}, "enum": [{"pattern": 1}]})
