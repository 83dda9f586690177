"""Who deletes or changes a project and who moves into it, forks or begins in it at that moment wait for each other in one order."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction

from apps.conversations.branches.services import conversation_fork
from apps.conversations.models import Conversation, Project, Turn
from apps.conversations.projects.services import (
    person_projects_erase,
    project_change,
    project_create,
    project_delete,
)
from apps.conversations.turns import bulk
from apps.conversations.turns.conversations import conversation_create
from basics.errors import Conflict, Invalid
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.servers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class Transaction(threading.Thread):
    """A write in a transaction of its own, over a connection of its own."""

    def __init__(self, cast: Cast, write: Callable[[], Any]) -> None:
        super().__init__()
        self.cast, self.write, self.pid = cast, write, 0
        self.refused: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            with tenant_scope(self.cast.tenant.pk), connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                self.pid = cursor.fetchone()[0]
                self.write()
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self.refused = error
        finally:
            connection.close()

    def waits(self) -> bool:
        """Tell whether it waits for a lock of another transaction, or has ended."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT cardinality(pg_blocking_pids(%s))", [self.pid])
            return not self.is_alive() or bool(self.pid and cursor.fetchone()[0])


def begin(cast: Cast, project: Project | None) -> Conversation:
    pk = None if project is None else project.pk
    return conversation_create(tenant=cast.tenant, actor=cast.actor("member"), project=pk)


def finished_turn(cast: Cast, conversation: Conversation) -> Turn:
    run = Run.objects.create(
        tenant=cast.tenant, user=cast.user("member"), kind="conversation", status="completed", answer="Yes."
    )
    return Turn.objects.create(
        tenant=cast.tenant,
        conversation=conversation,
        run=run,
        index=0,
        client_id=uuid.uuid4(),
        is_active=False,
    )


def test_no_two_writes_around_a_project_wait_in_a_circle(cast: Cast, subtests: pytest.Subtests) -> None:
    """Two transactions meet: the first holds the project and waits for a conversation in it, the second has another one."""
    owner: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    member: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
    firsts = {
        "delete": lambda project: project_delete(**owner, project=project),
        "change": lambda project: project_change(**owner, project=project, sharing="owner"),
        "erase": lambda project: person_projects_erase(cast.user("member")),
    }
    seconds = {
        "move": lambda project, pks, turn: bulk.conversations_move(
            **member, conversations=pks, project=project.pk
        ),
        "fork": lambda project, pks, turn: conversation_fork(**member, turn=turn),
        "begin": lambda project, pks, turn: begin(cast, project),
    }
    for (name, first), (other, second) in itertools.product(firsts.items(), seconds.items()):
        with subtests.test(f"{name}, {other}"), tenant_scope(cast.tenant.pk):
            sharing = {**member} if name == "erase" else {**owner, "sharing": "workspace"}
            project = project_create(**sharing, name="Leases")
            held, inside, outside = begin(cast, project), begin(cast, project), begin(cast, None)
            turn = finished_turn(cast, inside)
            with transaction.atomic():
                Conversation.objects.select_for_update().get(pk=held.pk)
                one = Transaction(cast, partial(first, project))
                wait_for(one.waits, "the project to be held")
                two = Transaction(cast, partial(second, project, [inside.pk, outside.pk], turn))
                wait_for(two.waits, "the second to wait")
            one.join()
            two.join()
            assert one.refused is None
            assert isinstance(two.refused, Invalid | Conflict), "the project is gone, or not shared any more"
            assert not Conversation.objects.filter(project=project).exists()
