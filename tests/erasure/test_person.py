"""An erased person is named nowhere but in content that a workspace collected, and the audit trail still verifies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection, transaction

from apps.conversations.models import Conversation, Message
from basics.errors import Conflict, Denied, Invalid
from erasure.holds import hold_place, hold_release
from erasure.models import Erasure
from erasure.names import identity_of, names_kept
from erasure.rules import columns_of, models_all
from erasure.services import erasures_round, person_erase_request, person_erase_undo
from tenancy.actors import Actor
from tenancy.audit_chain import audit_chain_verify
from tenancy.database.base import as_login_role
from tenancy.models import AuditChain, AuditEvent, Invite, Membership, User
from tenancy.origin import origin_scope
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tests.erasure.conftest import rows_of
from tests.erasure.planting import Planted, found_in_files, found_in_rows, plant
from tests.factories import actor_of, make_member, make_user
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)
MAIL = 'zq.o"hara+work@example.org'
NAME = ("Zqelda", "O’Hära-SSmith")
FORMS = ["zq.o", "Zqelda"]


@pytest.fixture
def person(transactional_db: None) -> User:
    """A person whose name and address need escaping in JSON, regular expressions and SQL."""
    user = make_user()
    User.objects.filter(pk=user.pk).update(email=MAIL, first_name=NAME[0], last_name=NAME[1])
    user.refresh_from_db()
    EmailAddress.objects.create(user=user, email="zq.other@example.org", verified=True)
    return user


def act(side: Side, user: User, action: str, *, ip: str = "2001:db8::7a71:9c3e:51d8", **options: Any) -> None:
    """Record something that a person did."""
    actor = Actor("user", side.tenant.pk, frozenset(), user_id=user.pk, name=user.get_full_name())
    with (
        tenant_scope(side.tenant.pk),
        origin_scope(ip=ip, request_id=f"{ip[-4:]}-req"),
        transaction.atomic(),
    ):
        audit_record(tenant=side.tenant, actor=actor, action=action, **options)


def ask(person: User) -> Erasure:
    return person_erase_request(person=person, by=person, confirm=person.email)


def test_their_names_are_nowhere_but_in_content_and_what_was_theirs_is_gone(home: Path, person: User) -> None:
    side, other = Side(), Side()
    member = side.people["member"] = make_member(side.tenant, "member", person)
    rows = rows_of(side, "member")  # whatever can be a person's is theirs
    mine = Planted()
    with tenant_scope(side.tenant.pk):
        conversation = Conversation.objects.create(
            tenant=side.tenant,
            user=person,
            title=mine.mark("title"),
            model="extractive",
            draft=mine.mark("draft"),
        )
    words = Planted()
    with platform_scope():
        fresh = [
            type(row)._base_manager.get(pk=row.pk)
            for row in rows
            if not isinstance(row, (AuditEvent, AuditChain))
        ]
    spoken = f"{person.get_full_name()} <{MAIL.upper()}>, zq.other@example.org."

    def names(model: Any) -> list[Any]:
        return [f for f in columns_of(model, "names") if f.max_length is None or f.max_length > 70]

    plant(words, fresh, value=lambda mark: spoken, columns=names)
    assert len(words.marks) > 80
    act(side, person, "document.upload", object_name=MAIL, data={"to": [spoken]})
    act(side, side.user("owner"), "member.add", object_name=f"{person} {MAIL}")
    act(other, other.user("owner"), "a.b", ip="2001:db8::1111")
    before = audit_chain_verify(tenant=side.tenant)
    assert before.is_intact
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store.save()
    with tenant_scope(side.tenant.pk):
        Invite.objects.create(
            tenant=side.tenant, email=MAIL.upper(), token_sha256="0" * 64, expires_at=conversation.updated_at
        )
    assert len(found_in_rows(FORMS)) == 2

    made = ask(person)
    assert erasures_round() == 1
    made.refresh_from_db()
    assert made.state == "done", made.detail

    assert found_in_rows([*FORMS, *mine.marks, "7a71:9c3e:51d8", "51d8-req"]) == {}
    assert found_in_files([*FORMS, MAIL], home) == {}
    assert not User.objects.filter(pk=person.pk).exists()
    assert not Session.objects.filter(pk=store.session_key).exists()
    with platform_scope():
        assert not Membership.objects.filter(pk=member.pk).exists()
        assert not Conversation.objects.filter(pk=conversation.pk).exists()
    after = audit_chain_verify(tenant=side.tenant)
    assert after.is_intact
    assert after.redacted >= 2
    assert after.events == before.events + 1
    assert audit_chain_verify(tenant=other.tenant).redacted == 0
    with tenant_scope(side.tenant.pk):
        mine_now = AuditEvent.objects.get(action="document.upload")
    assert mine_now.actor_name == f"person-{person.pk}"
    assert mine_now.data == {"to": [f"person-{person.pk} <person-{person.pk}>, person-{person.pk}."]}
    whats = {line["what"] for line in made.report}
    assert whats == {"removed", "pseudonymised", "kept"}
    assert not any(form.lower() in json.dumps(made.report).lower() for form in FORMS)


def test_what_a_workspace_collected_stays_and_is_counted(home: Path, person: User) -> None:
    side = Side()
    message = side.row("conversations.Message", "owner")
    with tenant_scope(side.tenant.pk):
        Message.objects.filter(pk=message.pk).update(text=f"Who is {MAIL}?")
    who = identity_of(person)
    with as_login_role():
        assert names_kept(who) == {"conversations.Message": 1}
    made = ask(person)
    assert erasures_round() == 1
    made.refresh_from_db()
    kept = {line["where"]: line for line in made.report if line["what"] == "kept"}
    assert kept["conversations.Message"]["count"] == 1
    assert "document or conversation" in kept["conversations.Message"]["why"]


def test_no_neighbour_with_a_similar_address_is_renamed(home: Path, person: User) -> None:
    side = Side()
    User.objects.filter(pk=person.pk).update(email="anna@x.example", first_name="", last_name="")
    person.refresh_from_db()
    others = "joanna@x.example, anna@x.example.org, b-anna@x.example, anna@x.example-2.org, ANNA@X.EXAMPLE."
    collection = side.row("collections.Collection", "owner")
    with tenant_scope(side.tenant.pk):
        type(collection).objects.filter(pk=collection.pk).update(description=others)
    ask(person)
    assert erasures_round() == 1
    with tenant_scope(side.tenant.pk):
        found = type(collection).objects.get(pk=collection.pk).description
    assert found == others.replace("ANNA@X.EXAMPLE", f"person-{person.pk}")


def test_a_chain_that_someone_else_altered_is_still_found(home: Path, person: User) -> None:
    side = Side()
    act(side, person, "a.a", object_name="x")
    act(side, person, "b.b", object_name="y")
    ask(person)
    assert erasures_round() == 1
    assert audit_chain_verify(tenant=side.tenant).redacted == 2
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tenancy_auditevent SET object_name = 'z' WHERE tenant_id = %s AND action = 'a.a'",
            [side.tenant.pk],
        )
    found = audit_chain_verify(tenant=side.tenant)
    assert [p.kind for p in found.problems] == ["altered"]
    assert found.redacted == 1
    # A note that a person writes, not the system, excuses nothing.
    with tenant_scope(side.tenant.pk):
        row = AuditEvent.objects.get(action="a.a")
    from tenancy.audit_chain import digests_now

    with tenant_scope(side.tenant.pk):
        digest = digests_now(side.tenant, [row.seq or 0])[row.seq or 0]
    act(side, side.user("owner"), "audit.redact", data={"events": {str(row.seq): digest}})
    assert [p.kind for p in audit_chain_verify(tenant=side.tenant).problems] == ["altered"]


def test_who_may_ask(home: Path, person: User, settings: Any) -> None:
    settings.ERASURE_GRACE_DAYS = 7
    stranger, operator = make_user(), make_user()
    User.objects.filter(pk=operator.pk).update(is_superuser=True, is_staff=True)
    operator.refresh_from_db()
    with pytest.raises(Denied):
        person_erase_request(person=person, by=stranger, confirm=person.email)
    with pytest.raises(Invalid):
        person_erase_request(person=person, by=person, confirm=stranger.email)
    with pytest.raises(Denied):
        person_erase_request(person=person, by=operator, confirm=person.email, now=True)
    ask(person)
    with pytest.raises(Denied):
        person_erase_undo(person=person, by=stranger)
    assert erasures_round() == 0
    person_erase_undo(person=person, by=person)
    with pytest.raises(Conflict):
        person_erase_undo(person=person, by=person)
    person_erase_request(person=person, by=operator, confirm=person.email)
    assert User.objects.filter(pk=person.pk, is_active=True).exists()


def test_an_only_owner_and_a_legal_hold_are_in_the_way(home: Path) -> None:
    side = Side()
    owner = side.user("owner")
    with pytest.raises(Conflict, match="only owner"):
        ask(owner)
    make_member(side.tenant, "owner", make_user())
    actor = actor_of(side.people["owner"])
    hold_place(tenant=side.tenant, actor=actor, reason="Case")
    with pytest.raises(Conflict, match="legal hold"):
        ask(owner)
    hold_release(tenant=side.tenant, actor=actor)
    made = ask(owner)
    hold_place(tenant=side.tenant, actor=actor, reason="Case again")
    assert erasures_round() == 0
    made.refresh_from_db()
    assert made.state == "waiting"
    assert "legal hold" in made.detail


def test_every_reference_to_a_person_says_what_becomes_of_it() -> None:
    for model in models_all():
        for column in model._meta.concrete_fields:
            if column.related_model is User:
                remote: Any = column.remote_field
                assert remote.on_delete.__name__ in {"CASCADE", "SET_NULL"}, column
    assert len(tenant_models()) > 100
