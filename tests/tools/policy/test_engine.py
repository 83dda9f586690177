"""The engine: deny wins, order does not matter, what is not understood denies."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.tools.policy.engine import (
    Decision,
    Grant,
    Subject,
    ToolFacts,
    decide,
    decide_all,
    glob_matches,
    policy_compile,
)
from toolloop.deferred import Approval

NOW = datetime(2026, 11, 20, tzinfo=UTC)
STRENGTH = {"allow": 1, "ask": 2, "deny": 3}
MAIL = ToolFacts("send_mail", "crm.mail", side_effects=True)
READ = ToolFacts("read_file", "files")
MEMBER = Subject("member", 7, None)


def grant(effect: str = "allow", number: int = 1, **values: Any) -> Grant:
    return Grant(number, effect, **{"target_kind": "pattern", "target": "*", **values})


def result(grants: list[Grant], tool: ToolFacts = MAIL, **values: Any) -> Decision:
    subject = values.pop("subject", MEMBER)
    return decide(policy_compile(grants, now=NOW), subject, tool, **values)


def test_nothing_granted_is_denied() -> None:
    found = result([])
    assert (found.effect, found.rule) == ("deny", None)


@pytest.mark.parametrize("effects", list(itertools.permutations(STRENGTH)))
def test_deny_wins_then_ask_then_allow(effects: tuple[str, ...]) -> None:
    for count in (1, 2, 3):
        chosen = effects[:count]
        found = result([grant(e, i + 1) for i, e in enumerate(chosen)])
        assert found.effect == max(chosen, key=STRENGTH.__getitem__)
        assert found.rule == chosen.index(found.effect) + 1


@pytest.mark.parametrize(
    ("kind", "target", "covered"),
    [
        ("tool", "send_mail", True),
        ("tool", "send_mai", False),
        ("tool", "Send_mail", False),
        ("group", "crm", True),
        ("group", "crm.mail", True),
        ("group", "crm.mail.x", False),
        ("group", "cr", False),
        ("pattern", "send_*", True),
        ("pattern", "*_mail", True),
        ("pattern", "*d_m*", True),
        ("pattern", "send_", False),
        ("pattern", "send_mail*", True),
        ("pattern", "*x*", False),
        ("pattern", "s*s*l", False),
    ],
)
def test_target_covers_what_it_says(kind: str, target: str, covered: bool) -> None:
    found = result([grant(target_kind=kind, target=target)])
    assert (found.effect == "allow") is covered


@pytest.mark.parametrize(
    ("kind", "who", "applies"),
    [
        ("everyone", "", True),
        ("role", "member", True),
        ("role", "owner", False),
        ("member", "7", True),
        ("member", "07", False),
        ("member", "8", False),
        ("api_key", "7", False),
    ],
)
def test_subject_is_whom_it_names(kind: str, who: str, applies: bool) -> None:
    found = result([grant(subject_kind=kind, subject=who)])
    assert (found.effect == "allow") is applies


def test_key_has_the_grants_of_its_person_and_its_own() -> None:
    key = Subject("member", 7, 3)
    for kind, who in (("role", "member"), ("member", "7"), ("api_key", "3")):
        assert result([grant(subject_kind=kind, subject=who)], subject=key).effect == "allow"
    denied = [grant(), grant("deny", 2, subject_kind="member", subject="7")]
    assert result(denied, subject=key).effect == "deny"


def test_collection_narrows_and_several_collections_must_all_agree() -> None:
    policy = policy_compile([grant(collection_id=1)], now=NOW)
    assert decide(policy, MEMBER, MAIL, 1).effect == "allow"
    assert decide(policy, MEMBER, MAIL, 2).effect == "deny"
    assert decide(policy, MEMBER, MAIL, None).effect == "deny"
    assert decide_all(policy, MEMBER, MAIL, [1, 2]).effect == "deny"
    assert decide_all(policy, MEMBER, MAIL, [1]).effect == "allow"
    assert decide_all(policy, MEMBER, MAIL, []).effect == "deny"


def test_calls_tell_reading_tools_from_others() -> None:
    assert result([grant(calls="read_only")]).effect == "deny"
    assert result([grant(calls="read_only")], READ).effect == "allow"
    assert result([grant(calls="side_effects")]).effect == "allow"


def test_expired_grant_no_longer_applies_nor_one_that_expires_meanwhile() -> None:
    later = NOW + timedelta(minutes=1)
    assert result([grant(expires_at=NOW)]).effect == "deny"
    policy = policy_compile([grant(expires_at=later)], now=NOW)
    assert decide(policy, MEMBER, MAIL, now=NOW).effect == "allow"
    assert decide(policy, MEMBER, MAIL, now=later).effect == "deny"


@pytest.mark.parametrize(
    "broken",
    [
        {"effect": "permit"},
        {"effect": ""},
        {"target_kind": "regex"},
        {"subject_kind": "team"},
        {"calls": "some"},
        {"arguments": [{"kind": "newer", "argument": "a"}]},
        {"arguments": {"kind": "equals"}},
        {"arguments": "x"},
        {"arguments": [{"kind": "schema", "schema": {"if": {}}}]},
        {"arguments": [None]},
        {"arguments": None},
    ],
)
def test_grant_that_cannot_be_understood_denies(broken: dict[str, Any]) -> None:
    for arguments in (None, {}, {"a": 1}):
        found = result(
            [
                grant(),
                grant(number=2, **broken)
                if "effect" not in broken
                else Grant(2, broken["effect"], "pattern", "*"),
            ],
            arguments=arguments,
        )
        assert (found.effect, found.rule) == ("deny", 2)


def test_condition_decides_at_the_call_and_leaves_the_offer_open() -> None:
    below = [{"kind": "below", "argument": "amount", "value": 100}]
    allowed = [grant(arguments=below)]
    assert result(allowed).effect == "allow"
    assert result(allowed, arguments={"amount": 99}).effect == "allow"
    assert result(allowed, arguments={"amount": 100}).effect == "deny"
    assert result(allowed, arguments={}).effect == "deny"
    denied = [grant(), grant("deny", 2, arguments=below)]
    assert result(denied).effect == "allow"
    assert result(denied, arguments={"amount": 5}).effect == "deny"
    assert result(denied, arguments={"amount": 500}).effect == "allow"


def test_condition_that_cannot_be_evaluated_denies() -> None:
    below = [{"kind": "below", "argument": "amount", "value": 100}]
    for value in ("5", None, True, float("nan")):
        found = result([grant(), grant(number=2, arguments=below)], arguments={"amount": value})
        assert (found.effect, found.rule) == ("deny", 2), value


def test_pattern_is_quick_on_a_hostile_name() -> None:
    begun = datetime.now(UTC)
    assert not glob_matches("*a" * 30 + "b", "a" * 64)
    assert (datetime.now(UTC) - begun).total_seconds() < 5


_conditions = st.sampled_from(
    [
        [],
        [{"kind": "equals", "argument": "a", "value": 1}],
        [{"kind": "at_most", "argument": "a", "value": 2}],
        [{"kind": "nonsense", "argument": "a"}],
        [{"kind": "schema", "schema": {"required": ["a"]}}],
    ]
)
_grants = st.builds(
    Grant,
    id=st.integers(1, 10**6),
    effect=st.sampled_from(["allow", "ask", "deny", "other"]),
    target_kind=st.sampled_from(["tool", "group", "pattern", "toolkit", "other"]),
    target=st.sampled_from(["send_mail", "crm", "crm.mail", "send_*", "*", ""]),
    members=st.sampled_from([frozenset(), frozenset({"send_mail"})]),
    calls=st.sampled_from(["any", "read_only", "side_effects", "other"]),
    subject_kind=st.sampled_from(["everyone", "role", "member", "api_key", "other"]),
    subject=st.sampled_from(["", "member", "owner", "7", "3"]),
    collection_id=st.sampled_from([None, 1, 2]),
    arguments=_conditions,
    expires_at=st.sampled_from([None, NOW, NOW + timedelta(hours=1)]),
)
_calls = st.tuples(
    st.sampled_from([MAIL, READ]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, {}, {"a": 1}, {"a": 2}, {"a": "x"}]),
    st.sampled_from([MEMBER, Subject("member", 7, 3), Subject("owner", 3), Subject()]),
)


def _effect(grants: list[Grant], call: Any) -> str:
    tool, collection, arguments, subject = call
    return decide(policy_compile(grants, now=NOW), subject, tool, collection, arguments, now=NOW).effect


@settings(max_examples=400, deadline=None)
@given(st.lists(_grants, max_size=8), _grants, _calls)
def test_adding_a_deny_never_widens(grants: list[Grant], more: Grant, call: Any) -> None:
    is_readable = "other" not in (more.effect, more.target_kind, more.calls, more.subject_kind)
    if more.effect != "deny" and is_readable:
        more = replace(more, effect="deny")
    before, after = _effect(grants, call), _effect([*grants, more], call)
    assert STRENGTH[after] >= STRENGTH[before]


@settings(max_examples=400, deadline=None)
@given(st.lists(_grants, max_size=7), _calls, st.randoms())
def test_order_of_grants_never_matters(grants: list[Grant], call: Any, random: Any) -> None:
    tool, collection, arguments, subject = call
    unique = list({g.id: g for g in grants}.values())
    shuffled = random.sample(unique, len(unique))
    first, second = (
        decide(policy_compile(g, now=NOW), subject, tool, collection, arguments, now=NOW)
        for g in (unique, shuffled)
    )
    assert first == second


@settings(max_examples=300, deadline=None)
@given(st.lists(_grants, max_size=8), _calls)
def test_offer_is_never_stricter_than_the_calls(grants: list[Grant], call: Any) -> None:
    """What may be called was offered: an offer is denied only where every call is."""
    tool, collection, arguments, subject = call
    if arguments is not None and _effect(grants, call) != "deny":
        assert _effect(grants, (tool, collection, None, subject)) != "deny"


SECOND = Approval("role", "admin")


@pytest.mark.parametrize("order", [(1, 2), (2, 1)], ids=str)
def test_second_person_wins_over_the_one_who_asked_whichever_rule_is_older(order: tuple[int, int]) -> None:
    own, other = order
    found = result([grant("ask", own), grant("ask", other, approval=SECOND), grant("allow", 3)])
    assert (found.effect, found.approval) == ("ask", SECOND)
    assert result([grant("ask", own), grant("deny", other)]).approval == Approval()


def test_strictest_approver_counts_over_several_collections() -> None:
    rules = [grant("ask", 1, collection_id=1), grant("ask", 2, collection_id=2, approval=SECOND)]
    policy = policy_compile(rules, now=NOW)
    for collections in ([1, 2], [2, 1]):
        assert decide_all(policy, MEMBER, MAIL, collections).approval == SECOND


def test_approver_that_is_not_understood_denies() -> None:
    found = result([grant("ask", 1, approval=Approval("committee", "x")), grant("allow", 2)])
    assert (found.effect, found.rule) == ("deny", 1)
