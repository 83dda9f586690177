"""Projects: who sees and changes them, what they give a conversation, and what they never give."""

from __future__ import annotations

import datetime
import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from apps.collections.models import Collection
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.models import Conversation, ConversationShare, Feedback, Project, ProjectMember
from apps.conversations.projects import selectors
from apps.conversations.projects.services import (
    person_projects_erase,
    project_change,
    project_create,
    project_delete,
    projects_unnamed,
)
from apps.conversations.transcript.search import conversation_find
from apps.conversations.transcript.selectors import conversation_get, conversation_list, scope_names
from apps.conversations.turns import bulk
from apps.conversations.turns.arriving import conversations_arrived
from apps.conversations.turns.conversations import conversation_create
from basics.errors import Denied, Invalid, Missing
from exports.moves import Arrival
from tenancy.models import AuditEvent
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast
from tests.conversations.chat.test_views import HTMX, client_of, key_headers, url
from tests.conversations.support import Library, answer, ask, fresh
from tests.factories import make_collection
from toolloop.providers.scripted import ScriptedProvider, says

pytestmark = pytest.mark.django_db(transaction=True)


def make(cast: Cast, role: str = "member", **values: Any) -> Project:
    with tenant_scope(cast.tenant.pk):
        return project_create(tenant=cast.tenant, actor=cast.actor(role), **{"name": "Leases", **values})


def begin(cast: Cast, role: str, project: Project | None, **values: Any) -> Conversation:
    with tenant_scope(cast.tenant.pk):
        pk = None if project is None else project.pk
        return conversation_create(tenant=cast.tenant, actor=cast.actor(role), project=pk, **values)


def seen(cast: Cast, role: str) -> list[str]:
    tenant = cast.other_tenant if role == "outsider" else cast.tenant
    with tenant_scope(tenant.pk):
        return [row.name for row in selectors.project_list(actor=cast.actor(role))]


def change(cast: Cast, role: str, project: Project, **values: Any) -> Project:
    with tenant_scope(cast.tenant.pk):
        return project_change(tenant=cast.tenant, actor=cast.actor(role), project=project, **values)


def test_project_is_its_owners_until_it_is_shared_and_never_another_workspaces(cast: Cast) -> None:
    project = make(cast)
    assert [seen(cast, role) for role in ("member", "owner", "admin", "viewer", "outsider")] == [
        ["Leases"], [], [], [], [],
    ]  # fmt: skip
    for role in ("owner", "viewer"):
        with pytest.raises(Invalid, match="project"):
            begin(cast, role, project)
        with pytest.raises(Missing):
            change(cast, role, project, name="Mine")
    with tenant_scope(cast.tenant.pk):  # nor does its name stand in the audit trail for others
        assert projects_unnamed(cast.actor("owner"), [project.pk]) == {project.pk}
        assert projects_unnamed(cast.actor("member"), [project.pk]) == set()
    change(cast, "member", project, sharing="members", members=[cast.user("viewer").pk])
    assert [seen(cast, role) for role in ("viewer", "owner", "outsider")] == [["Leases"], [], []]
    change(cast, "member", project, sharing="workspace")
    assert [seen(cast, role) for role in ("viewer", "owner", "outsider")] == [["Leases"], ["Leases"], []]
    with pytest.raises(Denied):  # seeing it is no right to change it
        change(cast, "viewer", project, name="Mine")
    change(cast, "admin", project, name="Leases 2026")  # what others see too, admins manage
    with pytest.raises(Invalid):  # a person of another workspace
        change(cast, "member", project, members=[cast.user("outsider").pk])
    with pytest.raises(Denied):  # who may not list members may not try out their ids
        make(cast, "viewer", sharing="members", members=[cast.user("owner").pk])
    with tenant_scope(cast.tenant.pk):
        assert not ProjectMember.objects.filter(user=cast.user("outsider")).exists()
        told = AuditEvent.objects.filter(action="project.change")
        assert told.count() == 3
        assert "2026" not in str([event.data for event in told])


def test_shared_project_shows_no_one_elses_conversation(cast: Cast) -> None:
    project = make(cast, sharing="workspace")
    mine, other = begin(cast, "member", project), begin(cast, "viewer", project)
    with tenant_scope(cast.tenant.pk):
        for role, own in (("member", mine), ("viewer", other), ("owner", None)):
            actor = cast.actor(role)
            row = selectors.project_get(actor=actor, pk=project.pk)
            inside = selectors.project_conversations(actor=actor, project=row)
            assert [c.pk for c in inside] == ([] if own is None else [own.pk])
            assert row.conversation_count == len(inside)  # type: ignore[attr-defined]
    change(cast, "member", project, sharing="owner")
    with tenant_scope(cast.tenant.pk):  # who doesn't see it any more has left it
        assert Conversation.objects.get(pk=other.pk).project_id is None
        assert Conversation.objects.get(pk=mine.pk).project_id == project.pk


def test_conversation_begins_with_the_projects_collections_and_never_with_more(
    cast: Cast, library: Library
) -> None:
    other = make_collection(cast.tenant, "Other")
    project = make(cast, collections=[library.collection.pk])
    row = begin(cast, "member", project)
    chosen = begin(cast, "member", project, collections=[other.pk])
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("member")
        assert list(scope_names(actor=actor, conversation=row)) == [library.collection.pk]
        assert list(scope_names(actor=actor, conversation=chosen)) == [other.pk]
        Collection.objects.filter(pk=library.collection.pk).delete()
    late = begin(cast, "member", project)
    with tenant_scope(cast.tenant.pk):  # a deleted collection doesn't widen what is searched
        assert scope_names(actor=cast.actor("member"), conversation=late) == {}
    foreign = make_collection(cast.other_tenant, "Theirs")
    with pytest.raises(Invalid):
        change(cast, "member", project, collections=[foreign.pk])


def test_form_changes_nothing_that_was_left_as_it_was(cast: Cast, library: Library) -> None:
    make_collection(cast.tenant, "Other")
    people = {role: cast.user(role).pk for role in ("admin", "viewer")}
    project = make(
        cast, collections=[library.collection.pk], sharing="members", members=list(people.values())
    )
    form: dict[str, Any] = {
        "name": "Leases 2026",
        "sharing": "members",
        "collections": [library.collection.pk],
        "members": list(people.values()),
    }
    edit = url("project-edit", cast, project.pk)
    assert client_of(cast, "admin").post(edit, form).status_code == 302
    assert client_of(cast, "admin").post(edit, form | {"members": [people["admin"]]}).status_code == 302
    assert [seen(cast, role) for role in ("admin", "viewer")] == [["Leases 2026"], []]
    with tenant_scope(cast.tenant.pk):
        Collection.objects.filter(pk=form.pop("collections")[0]).delete()
        # An owner who may not list members any more keeps those there are, and can leave some out.
        Project.objects.update(user=cast.user("viewer"))
    page = client_of(cast, "viewer").post(edit, form | {"name": "Rents", "members": [people["admin"]]})
    assert page.status_code == 302
    with tenant_scope(cast.tenant.pk):
        left = Project.objects.get()
        assert (left.name, left.searches_all) == ("Rents", False)  # no collection that is left isn't all
        assert [row.user_id for row in left.members.all()] == [people["admin"]]
    assert client_of(cast, "viewer").post(edit, form | {"members": []}).status_code == 302
    assert seen(cast, "admin") == []


def test_who_may_not_list_members_reads_no_address_of_others_in_a_project(cast: Cast) -> None:
    people = [cast.user(role).pk for role in ("viewer", "admin")]
    project = make(cast, "owner", sharing="members", members=people)
    page = client_of(cast, "viewer").get(url("project", cast, project.pk)).content.decode()
    assert cast.user("viewer").email in page
    assert cast.user("admin").email not in page
    assert (
        cast.user("admin").email
        in client_of(cast, "admin").get(url("project", cast, project.pk)).content.decode()
    )


async def test_instructions_reach_the_model_last_and_only_while_the_project_is_seen(
    cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    systems: list[str] = []
    stream = ScriptedProvider.stream

    def heard(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        systems.append(request.system)
        return stream(self, request, *args, **kwargs)

    monkeypatch.setattr(ScriptedProvider, "stream", heard)
    project = await sync_to_async(make)(cast, "owner", sharing="workspace", instructions="Answer in rhymes.")
    row = await sync_to_async(begin)(cast, "member", project)
    turn = await sync_to_async(ask)(cast, conversation=row)
    await answer(turn, lane_threads, monkeypatch, [says("So.")])
    assert systems[-1].endswith("Answer in rhymes.")
    assert systems[-1].index("Cite.") < systems[-1].index("Answer in rhymes.")

    def hide() -> None:  # not by the service, which takes the conversation out as well
        with tenant_scope(cast.tenant.pk):
            Project.objects.filter(pk=project.pk).update(sharing="owner")

    await sync_to_async(hide)()
    turn = await sync_to_async(ask)(cast, conversation=row)
    await answer(turn, lane_threads, monkeypatch, [says("So.")])
    assert "rhymes" not in systems[-1]


def test_several_conversations_are_changed_together_or_not_at_all(cast: Cast) -> None:
    project = make(cast)
    mine = [begin(cast, "member", None).pk for _ in range(3)]
    theirs = begin(cast, "owner", None).pk
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    with tenant_scope(cast.tenant.pk):
        for write in (
            lambda pks: bulk.conversations_move(**who, conversations=pks, project=project.pk),
            lambda pks: bulk.conversations_archive(**who, conversations=pks, is_archived=True),
            lambda pks: bulk.conversations_delete(**who, conversations=pks),
        ):
            with pytest.raises(Invalid):
                write([mine[0], theirs])
        untouched = Conversation.objects.filter(project=None, archived_at=None, removed_at=None)
        assert untouched.count() == 4
        before = bulk.conversations_move(**who, conversations=mine[:2], project=project.pk)
        assert before == dict.fromkeys(mine[:2])
        assert bulk.conversations_archive(**who, conversations=mine, is_archived=True) == mine
        assert not conversation_list(actor=cast.actor("member")).exists()
        assert conversation_list(actor=cast.actor("member"), archived=True).count() == 3
    asked = fresh(ask(cast, conversation=Conversation(pk=mine[0], tenant=cast.tenant)))
    assert asked.conversation.archived_at is None  # a question brings it back


def test_deleted_conversations_are_no_ones_for_an_hour_and_then_gone(cast: Cast) -> None:
    turn = ask(cast, "Notice period?")
    row = turn.conversation
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member"), "conversations": [row.pk]}
    with tenant_scope(cast.tenant.pk):
        Feedback.objects.create(tenant=cast.tenant, turn=turn, user=cast.user("member"), verdict="good")
        share = ConversationShare.objects.create(
            tenant=cast.tenant,
            conversation=row,
            key=uuid.uuid4(),
            snapshot={"turns": []},
            created_by=cast.user("member"),
        )
        bulk.conversations_delete(**who)
        assert not conversation_list(actor=cast.actor("member"), archived=None).exists()
        assert conversation_find(actor=cast.actor("member"), query="notice") == []
        assert not feedback_list(actor=cast.actor("owner")).exists()
        with pytest.raises(Missing):
            conversation_get(actor=cast.actor("member"), pk=row.pk)
        assert not fresh(turn).is_active  # its answer was stopped
        with pytest.raises(Invalid):  # nobody else brings it back
            bulk.conversations_undelete(**{**who, "actor": cast.actor("owner")})
    assert client_of(cast, "owner").get(url("shared", cast, share.key)).status_code == 404
    with tenant_scope(cast.tenant.pk):
        assert 0 < bulk.removed_purge(tenant=cast.tenant) <= bulk.UNDO_S
        assert bulk.conversations_undelete(**who) == [row.pk]
        assert feedback_list(actor=cast.actor("owner")).count() == 1
        assert conversation_get(actor=cast.actor("member"), pk=row.pk).pk == row.pk
        bulk.conversations_delete(**who)
        later = timezone.now() + datetime.timedelta(seconds=bulk.UNDO_S + 1)
        assert bulk.removed_purge(tenant=cast.tenant, now=later) == 0
        assert not Conversation.objects.filter(pk=row.pk).exists()


def test_deleting_a_project_keeps_conversations_unless_asked_otherwise(cast: Cast) -> None:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    for conversations in ("keep", "delete"):
        project = make(cast, sharing="workspace")
        mine, other = begin(cast, "member", project), begin(cast, "viewer", project)
        with tenant_scope(cast.tenant.pk):
            deleted = project_delete(**who, project=project, conversations=conversations)
            assert deleted == ([mine.pk] if conversations == "delete" else [])
            assert not Project.objects.exists()
            left = Conversation.objects.get(pk=other.pk)
            assert (left.project_id, left.removed_at) == (None, None)
            assert Conversation.objects.get(pk=mine.pk).project_id is None


def test_erased_persons_private_projects_go_and_shared_ones_stay_without_an_owner(cast: Cast) -> None:
    make(cast)
    shared = make(cast, name="Team", sharing="workspace")
    with platform_scope():
        assert person_projects_erase(cast.user("member")) == {"conversations.Project": 1}
        left = Project.objects.get()
        assert left.pk == shared.pk
        Project.objects.update(user=None)  # as the erasure of the account leaves it
    change(cast, "admin", left, name="Team 2")
    with pytest.raises(Denied):
        change(cast, "viewer", left, name="Mine")


def test_api_has_projects_and_the_project_of_a_conversation(cast: Cast) -> None:
    client, headers = Client(), key_headers(cast)
    ask_of: dict[str, Any] = {"headers": headers, "content_type": "application/json"}
    body = {"name": " Leases ", "instructions": "Short."}
    made = client.post("/api/v1/projects", body, **ask_of)
    assert made.status_code == 201, made.content
    project = made.json()
    wanted = {"name": "Leases", "sharing": "owner", "searches_all": True, "is_editable": True, "members": []}
    assert wanted.items() <= project.items()
    row = client.post("/api/v1/conversations", {"project": project["id"]}, **ask_of).json()
    assert row["project_id"] == project["id"]
    one = f"/api/v1/conversations/{row['id']}"
    assert client.patch(one, {"project": None, "is_archived": True}, **ask_of).json()["project_id"] is None
    listed = client.get("/api/v1/conversations?archived=true", headers=headers).json()["results"]
    assert [(c["id"], c["is_archived"]) for c in listed] == [(row["id"], True)]
    for do, changed in (("unarchive", 1), ("delete", 1), ("undelete", 1), ("undelete", 0)):
        sent = client.post("/api/v1/conversations/bulk", {"do": do, "conversations": [row["id"]]}, **ask_of)
        assert (sent.status_code, len(sent.json()["changed"])) == (200, changed)
    other = key_headers(cast, "outsider")
    where = f"/api/v1/projects/{project['id']}"
    assert client.get(where, headers=other).status_code == 404
    assert client.delete(f"{where}?conversations=keep", headers=headers).status_code == 204


def test_pages_create_move_and_undo(cast: Cast) -> None:
    client = client_of(cast, "member")
    made = client.post(url("project-create", cast), {"name": "Leases"})
    page = client.get(made["Location"])
    assert "No conversation here yet" in page.content.decode()
    with tenant_scope(cast.tenant.pk):
        project = Project.objects.get()
    row = begin(cast, "member", None, title="Notice period")
    form = {"conversations": row.pk, "do": "move", "project": project.pk, "back": project.pk}
    page = client.post(url("bulk", cast), form, follow=True)
    text = page.content.decode()
    assert "Notice period" in text
    assert "1 conversation moved." in text
    client.post(url("bulk-undo", cast), {"undo": page.context["undo"].token})
    with tenant_scope(cast.tenant.pk):
        assert Conversation.objects.get(pk=row.pk).project_id is None
    assert (
        client.post(url("bulk", cast), {"conversations": row.pk, "do": "delete"}, headers=HTMX).status_code
        == 204
    )
    stranger = client_of(cast, "owner")
    assert stranger.get(url("project", cast, project.pk)).status_code == 404
    assert stranger.post(url("bulk-undo", cast), {"undo": page.context["undo"].token}).status_code == 400
    gone, left = (begin(cast, "member", None).pk for _ in range(2))
    page = client.post(url("bulk", cast), {"conversations": [gone, left], "do": "archive"}, follow=True)
    client.post(url("delete", cast, gone))
    assert client.post(url("bulk-undo", cast), {"undo": page.context["undo"].token}).status_code == 302
    with tenant_scope(cast.tenant.pk):  # what is gone for good doesn't keep the others from coming back
        assert Conversation.objects.get(pk=left).archived_at is None


def test_import_ends_what_was_deleted_when_its_file_was_made(cast: Cast) -> None:
    kept, gone = begin(cast, "member", None), begin(cast, "member", None)
    with tenant_scope(cast.tenant.pk):
        bulk.conversations_delete(tenant=cast.tenant, actor=cast.actor("member"), conversations=[gone.pk])
        conversations_arrived(Arrival(cast.tenant, lambda text: [], lambda label, number: None))
        assert [row.pk for row in Conversation.objects.all()] == [kept.pk]
