"""The prompt library: whose prompts one sees, who changes them, what a variable is, and what an erasure leaves."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Prompt
from apps.conversations.prompts.selectors import prompt_get, prompt_list
from apps.conversations.prompts.services import (
    person_prompts_erase,
    prompt_create,
    prompt_delete,
    prompt_update,
    prompts_unnamed,
)
from apps.conversations.prompts.variables import variables_of
from basics.errors import Denied, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import make_collection

pytestmark = pytest.mark.django_db


def who(cast: Cast, role: str) -> dict[str, Any]:
    return {
        "tenant": cast.other_tenant if role == "outsider" else cast.tenant,
        "actor": cast.actor(role),
    }


def names(cast: Cast, role: str, query: str = "") -> list[str]:
    return [row.name for row in prompt_list(actor=cast.actor(role), query=query)]


def test_own_ones_are_ones_own_and_shared_ones_stay_in_the_workspace(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        own = prompt_create(**who(cast, "viewer"), name="Mine", text="Compare {a} and {b}.")
        shared = prompt_create(**who(cast, "member"), name="Ours", text="Sum up.", is_shared=True)
        assert (names(cast, "viewer"), names(cast, "member")) == (["Mine", "Ours"], ["Ours"])
        for act in (
            lambda: prompt_get(actor=cast.actor("owner"), pk=own.pk),
            lambda: prompt_update(**who(cast, "owner"), prompt=own, name="Stolen"),
            lambda: prompt_delete(**who(cast, "owner"), prompt=own),
        ):
            with pytest.raises(Missing):
                act()
    with tenant_scope(cast.other_tenant.pk):
        assert names(cast, "outsider") == []
        for row in (own, shared):
            with pytest.raises(Missing):
                prompt_update(**who(cast, "outsider"), prompt=row, name="Stolen")
            with pytest.raises(Missing):
                prompt_delete(**who(cast, "outsider"), prompt=row)


def test_sharing_and_shared_ones_need_the_right_to_write_assistants(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        own = prompt_create(**who(cast, "viewer"), name="Mine", text="Sum up.")
        shared = prompt_create(**who(cast, "member"), name="Ours", text="Sum up.", is_shared=True)
        with pytest.raises(Denied):
            prompt_create(**who(cast, "viewer"), name="N", text="T", is_shared=True)
        changes: list[dict[str, Any]] = [
            {"prompt": own, "is_shared": True},
            {"prompt": shared, "name": "Theirs"},
        ]
        for change in changes:
            with pytest.raises(Denied):
                prompt_update(**who(cast, "viewer"), **change)
        with pytest.raises(Denied):  # only who made it takes it back
            prompt_update(**who(cast, "admin"), prompt=shared, is_shared=False)
        assert (
            prompt_update(**who(cast, "admin"), prompt=shared, name="  Better\nname ").name == "Better name"
        )
        assert not prompt_update(**who(cast, "member"), prompt=shared, is_shared=False).is_shared
        assert names(cast, "admin") == []
        event = AuditEvent.objects.filter(action="prompt.update").latest("pk")
        assert event.data == {"before": {"is_shared": True}, "after": {"is_shared": False}}
        assert prompts_unnamed(cast.actor("owner"), [own.pk, shared.pk]) == {own.pk, shared.pk}


def test_what_cannot_be_kept_is_refused(cast: Cast) -> None:
    many = " ".join(f"{{v{'x' * n}}}" for n in range(21))
    tried: list[tuple[str, dict[str, Any]]] = [
        ("name", {"name": " \x00", "text": "T"}),
        ("text", {"name": "N", "text": "x" * 20_001}),
        ("text", {"name": "N", "text": many}),
        ("description", {"name": "N", "text": "T", "description": "x" * 301}),
    ]
    with tenant_scope(cast.tenant.pk):
        for field, values in tried:
            with pytest.raises(Invalid) as refused:
                prompt_create(**who(cast, "member"), **values)
            assert refused.value.data["field"] == field


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("From {country} to {Zielland}, {country}", ["country", "Zielland"]),
        ("{two words} and {kebab-case}", ["two words", "kebab-case"]),
        ('{"json": 1} {} {1} { x } {x } {{y}} {a.b} {__class__}', ["y"]),
    ],
)
def test_variables_are_names_in_braces_and_nothing_else(text: str, variables: list[str]) -> None:
    assert variables_of(text) == variables


def test_search_takes_all_words_and_begins_with_the_name(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        for name, description in (("A summary", ""), ("Summary", "of 100 % duties"), ("Other", "no summary")):
            prompt_create(**who(cast, "member"), name=name, text="T", description=description)
        assert names(cast, "member", "summary") == ["Summary", "A summary", "Other"]
        assert names(cast, "member", "100 % SUMM") == ["Summary"]
        assert names(cast, "member", "_") == []


def test_erasure_takes_ones_own_and_leaves_shared_ones_without_the_name(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        prompt_create(**who(cast, "member"), name="Mine", text="T")
        shared = prompt_create(**who(cast, "member"), name="Ours", text="T", is_shared=True)
    with platform_scope():
        assert person_prompts_erase(cast.user("member")) == {"conversations.Prompt": 1}
        assert list(Prompt.objects.filter(tenant=cast.tenant)) == [shared]


def test_api_keeps_lists_and_changes(cast: Cast) -> None:
    def client(**limits: Any) -> Client:
        _row, key = api_key_create(
            **who(cast, "owner"),
            name="k",
            scopes=["conversation.read", "conversation.write"],
            **limits,
        )
        return Client(headers={"Authorization": f"Bearer {key}"})

    with tenant_scope(cast.tenant.pk):
        shared = prompt_create(**who(cast, "member"), name="Ours", text="T", is_shared=True)
        mine, limited = client(), client(collections=[make_collection(cast.tenant).pk])
    body = {"name": "Duty", "text": "Duty of {goods}?", "description": "For one"}
    made = mine.post("/api/v1/prompts", body, content_type="application/json")
    assert made.status_code == 201, made.content
    row = made.json()
    assert (row["variables"], row["is_shared"], row["text"]) == (["goods"], False, "Duty of {goods}?")
    listed = mine.get("/api/v1/prompts", {"q": "duty"}).json()["results"]
    assert [one["id"] for one in listed] == [row["id"]]
    path = f"/api/v1/prompts/{row['id']}"
    assert mine.patch(path, {"text": "Other"}, content_type="application/json").json()["variables"] == []
    # The key has no right to write assistants, whoever it acts for.
    theirs = f"/api/v1/prompts/{shared.pk}"
    assert mine.patch(theirs, {"name": "X"}, content_type="application/json").status_code == 403
    assert mine.delete(path).status_code == 204
    assert mine.get(path).status_code == 404
    assert limited.get("/api/v1/prompts").json()["results"] == []
    assert limited.get(theirs).status_code == 404
