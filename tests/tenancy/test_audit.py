"""The trail tells who, what, from where, and stands or falls with the act."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils.translation import get_language, override

from audit.selectors import audit_list
from basics.errors import Conflict, Denied, Invalid
from tenancy.actors import system_actor
from tenancy.models import AuditEvent, Membership, Role, Tenant
from tenancy.origin import Origin, current, origin_scope, valid_ip
from tenancy.scope import tenant_scope
from tenancy.services import audit_record, tenant_create
from tests.cast import Cast
from tests.factories import make_collection, make_user


def test_event_holds_actor_object_and_origin(cast: Cast):
    collection = make_collection(cast.tenant, "Papers")
    actor = cast.actor("member")
    with (
        tenant_scope(cast.tenant.pk),
        origin_scope(ip="203.0.113.9", request_id="abc12345"),
        transaction.atomic(),
    ):
        event = audit_record(
            tenant=cast.tenant, actor=actor, action="collection.create", object=collection, data={"a": 1}
        )
        event.refresh_from_db()
    assert (event.actor_kind, event.actor_name, event.user_id) == (
        "user",
        cast.user("member").email,
        actor.user_id,
    )
    assert (event.object_type, event.object_id, event.object_name) == (
        "collections.collection",
        str(collection.pk),
        "Papers",
    )
    assert (event.ip, event.request_id, event.data) == ("203.0.113.9", "abc12345", {"a": 1})
    assert current() == Origin()


def test_event_goes_when_the_act_is_undone(cast: Cast):
    def act() -> None:
        with transaction.atomic():
            audit_record(tenant=cast.tenant, actor=system_actor(cast.tenant.pk), action="x.y")
            raise KeyError

    with tenant_scope(cast.tenant.pk):
        with pytest.raises(KeyError):
            act()
        assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_event_outside_a_transaction_is_a_programming_error():
    tenant = Tenant.objects.create(slug="t", name="t")
    with tenant_scope(tenant.pk), pytest.raises(RuntimeError, match="outside a transaction"):
        audit_record(tenant=tenant, actor=system_actor(tenant.pk), action="x.y")


def test_long_names_are_cut_and_not_refused(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        event = audit_record(
            tenant=cast.tenant, actor=system_actor(cast.tenant.pk), action="x.y", object_name="n" * 500
        )
    assert len(event.object_name) == 200


def test_list_needs_the_right_and_shows_own_rows(cast: Cast):
    for tenant in (cast.tenant, cast.other_tenant):
        with tenant_scope(tenant.pk):
            for action in ("key.create", "key.revoke", "member.add"):
                audit_record(tenant=tenant, actor=system_actor(tenant.pk), action=action)
    for who in ("member", "viewer"):
        with pytest.raises(Denied):
            audit_list(actor=cast.actor(who))
    with tenant_scope(cast.tenant.pk):
        owner = cast.actor("owner")
        assert audit_list(actor=owner).count() == 3
        assert [e.action for e in audit_list(actor=owner, action="key.")] == ["key.revoke", "key.create"]
        assert audit_list(actor=owner, action="key.create").count() == 1


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:DB8::1", "2001:db8::1"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]x", ""),
        ("", ""),
        ("unix:", ""),
        ("1.2.3.4, 5.6.7.8", ""),
        ("'; DROP TABLE", ""),
    ],
)
def test_address_that_is_none_is_left_out(text: str, address: str):
    assert valid_ip(text) == address


@pytest.fixture
def open_server(settings):
    settings.SIGNUP = "open"


@pytest.mark.usefixtures("db", "open_server")
def test_creator_becomes_owner():
    user = make_user()
    tenant = tenant_create(user=user, name="  My   team ", slug="my-team")
    assert tenant.name == "My team"
    with tenant_scope(tenant.pk):
        assert Membership.objects.get().role == Role.OWNER
        assert AuditEvent.objects.get().action == "tenant.create"


@pytest.mark.usefixtures("db", "open_server")
@pytest.mark.parametrize("slug", [" ", "A", "a_b", "-a", "a-", "a b", "a/b", "ä", "a" * 41, ".."])
def test_slug_that_is_no_part_of_a_url_is_refused(slug: str):
    with pytest.raises(Invalid):
        tenant_create(user=make_user(), name="x", slug=slug)


@pytest.mark.usefixtures("open_server")
def test_slug_is_given_once(cast: Cast):
    with pytest.raises(Conflict) as refused:
        tenant_create(user=make_user(), name="x", slug=cast.tenant.slug)
    assert refused.value.code == "slug_taken"


@pytest.mark.usefixtures("db", "open_server")
def test_workspace_without_an_address_gets_one_from_its_name() -> None:
    user = make_user()
    names = ("Kühlkette & Café, 2026_b", "Kühlkette & Café, 2026_b", "物流部", "--", "x" * 120)
    slugs = [tenant_create(user=user, name=name, slug="").slug for name in names]
    assert slugs == [
        *("kuhlkette-cafe-2026-b", "kuhlkette-cafe-2026-b-2"),
        *("workspace", "workspace-2", "x" * 30),
    ]
    with pytest.raises(Invalid, match="needs a name"):
        tenant_create(user=user, name=" ", slug="")


def test_closed_server_makes_workspaces_for_owners_only(cast: Cast, settings):
    settings.SIGNUP = "invite"
    with pytest.raises(Denied):
        tenant_create(user=cast.user("admin"), name="x", slug="x")
    assert tenant_create(user=cast.user("owner"), name="x", slug="x").pk


def test_names_are_kept_in_one_language(cast: Cast, monkeypatch: pytest.MonkeyPatch):
    """Who reads the trail reads what things are called in English, whichever language the actor's pages have."""
    collection = make_collection(cast.tenant, "Papers")
    monkeypatch.setattr(type(collection), "__str__", lambda self: str(get_language()))
    with tenant_scope(cast.tenant.pk), transaction.atomic(), override("de"):
        event = audit_record(
            tenant=cast.tenant, actor=cast.actor("member"), action="collection.create", object=collection
        )
        assert get_language() == "de"
    assert event.object_name == "en"
