"""A real streaming replica: it serves what may lag, never what its reader wrote or lost, and its death fails nothing."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.test import Client
from django.urls import get_resolver, reverse
from structlog.testing import capture_logs

from apps.collections.collection.services import collection_create
from apps.collections.documents.access import document_access_set
from apps.collections.models import Collection, Document
from config.doctor import check_replica, examine
from config.env import replica_settings
from tenancy.database import replica
from tenancy.lagging import marks_expire, may_lag_read, primary_reads, write_noted
from tenancy.models import Membership, Role, WriteMark
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import api_key_create, api_key_revoke, member_remove, member_role_change
from tests.factories import actor_of, make_collection, make_member, make_tenant
from tests.patience import PATIENCE_S
from tests.permissions.rows import API, PORTAL, Row
from tests.permissions.test_matrix import call, key_client, least, signed_in, url_arguments
from tests.permissions.world import Side, make_row
from tests.replica import Standby, replicated
from tests.servers import Stack, wait_for

pytestmark = pytest.mark.servers

LISTED = "collections_collection"
PATIENT_LAG_S = 3600
POSTED = {"name": "Posted", "chunk_size": 1200, "chunk_overlap": 200}


@pytest.fixture(scope="module")
def _replicated(django_db_setup: None, django_db_blocker: Any) -> Iterator[Standby]:
    with django_db_blocker.unblock(), replicated() as standby:
        yield standby


@pytest.fixture
def standby(_replicated: Standby, settings: Any) -> Standby:
    """The replica, running, in step, known to this process, and read however slow the machine is."""
    settings.REPLICA_LAG_S = PATIENT_LAG_S
    _replicated.restart_if_dead()
    _replicated.resume()
    looked_for()
    return _replicated


def looked_for() -> None:
    """Wait until this process knows that the replica is there."""
    replica.watch.is_there()
    assert replica.watch.seen.wait(PATIENCE_S), replica.watch.reason


class World:
    """A workspace with one collection that the replica has, and three owners, who may make any key."""

    def __init__(self, standby: Standby) -> None:
        self.standby, self.tenant = standby, make_tenant()
        self.owner = make_member(self.tenant, Role.OWNER)
        self.member = make_member(self.tenant, Role.OWNER)
        self.other = make_member(self.tenant, Role.OWNER)
        self.collection = make_collection(self.tenant, "Old")
        standby.caught_up()

    def client(self, who: Membership) -> Client:
        client = Client()
        client.force_login(who.user, "django.contrib.auth.backends.ModelBackend")
        return client

    def key(self, who: Membership | None = None) -> str:
        _, key = api_key_create(
            tenant=self.tenant, actor=actor_of(who or self.owner), name="k", scopes=sorted(KEY_SCOPES)
        )
        self.standby.caught_up()  # a new key is a change of rights
        return key

    def keyed(self, who: Membership | None = None) -> Client:
        return Client(headers={"Authorization": f"Bearer {self.key(who)}"})

    def page(self, name: str, **arguments: Any) -> str:
        return reverse(f"collections:{name}", kwargs={"tenant_slug": self.tenant.slug, **arguments})


@pytest.fixture
def world(standby: Standby) -> World:
    return World(standby)


def names(client: Client) -> list[str]:
    """Return the names of the collections that REST lists."""
    response = client.get(reverse("api:collections-list"))
    assert response.status_code == 200, response.content[:300]
    return sorted(row["name"] for row in response.json()["results"])


def new_collection(world: World, name: str, who: Membership | None = None) -> Collection:
    """Make a collection by a service, outside of any request: nobody's own write."""
    with tenant_scope(world.tenant.pk):
        return collection_create(tenant=world.tenant, actor=actor_of(who or world.owner), name=name)


# --- hostile: what a lagging replica must not show ------------------------------------------------


def test_who_was_removed_reads_on_nowhere(world: World, standby: Standby) -> None:
    page, rest = world.client(world.member), world.keyed(world.member)
    standby.caught_up()
    looked_for()
    assert page.get(world.page("list")).status_code == 200
    assert names(rest) == ["Old"]
    standby.pause()
    member_remove(tenant=world.tenant, actor=actor_of(world.owner), member_id=world.member.pk)
    with replica.reads_turned(), platform_scope():
        assert Membership.objects.filter(pk=world.member.pk).exists()  # the replica still has them
    assert page.get(world.page("list")).status_code == 404
    assert rest.get(reverse("api:collections-list")).status_code == 401


def test_a_key_that_was_revoked_opens_nothing(world: World, standby: Standby) -> None:
    row, key = api_key_create(
        tenant=world.tenant, actor=actor_of(world.owner), name="k", scopes=sorted(KEY_SCOPES)
    )
    client = Client(headers={"Authorization": f"Bearer {key}"})
    standby.caught_up()
    assert names(client) == ["Old"]
    standby.pause()
    api_key_revoke(tenant=world.tenant, actor=actor_of(world.owner), key_id=row.pk)
    assert client.get(reverse("api:collections-list")).status_code == 401


def test_a_lower_role_holds_at_once(world: World, standby: Standby) -> None:
    page = world.client(world.member)
    standby.pause()
    member_role_change(
        tenant=world.tenant, actor=actor_of(world.owner), member_id=world.member.pk, role=Role.VIEWER
    )
    shown = page.get(world.page("list"))
    assert shown.context["membership"].role == Role.VIEWER
    assert not shown.context["can_write"]


def test_a_document_that_was_limited_is_shown_to_nobody_else(world: World, standby: Standby) -> None:
    document: Document = make_row(
        Document,
        world.tenant,
        world.owner.user,
        collection=world.collection,
        status="ready",
        path="secret.md",
    )
    rest, where = world.keyed(world.other), {"pk": world.collection.pk}
    listing, searching = reverse("api:documents-list", kwargs=where), reverse("api:search")
    standby.caught_up()
    assert len(rest.get(listing).json()["results"]) == 1
    standby.pause()
    before = standby.statements("collections_document")
    with tenant_scope(world.tenant.pk):
        document_access_set(
            tenant=world.tenant,
            actor=actor_of(world.owner),
            document=document,
            is_restricted=True,
            users=[world.owner.user_id],
        )
    assert rest.get(listing).json()["results"] == []
    found = world.client(world.other).get(world.page("chunks", **where), {"document": document.pk})
    assert found.status_code == 404
    assert rest.post(searching, {"query": "secret"}, content_type="application/json").status_code == 200
    assert standby.statements("collections_document") == before  # the whole workspace waits for it
    standby.resume()
    assert rest.get(listing).json()["results"] == []
    assert standby.statements("collections_document") > before


def test_walls_stand_on_the_replica(world: World, standby: Standby) -> None:
    others = World(standby)
    with platform_scope():
        Collection.objects.filter(pk=others.collection.pk).update(name="Theirs")
    standby.caught_up()
    for who, name in ((world, "Old"), (others, "Theirs")):
        before = standby.statements(LISTED)
        assert names(who.keyed()) == [name]
        assert standby.statements(LISTED) > before
    count = "SELECT count(*) FROM collections_collection"
    with replica.reads_turned(), connection.cursor() as cursor:
        cursor.execute(count)
        assert cursor.fetchone() == (0,)  # no scope, no row
        with tenant_scope(world.tenant.pk):
            cursor.execute(f"{count} WHERE tenant_id = %s", [others.tenant.pk])
            assert cursor.fetchone() == (0,)
            cursor.execute(count)
            assert cursor.fetchone() == (1,)
    assert world.client(others.owner).get(world.page("list")).status_code == 404


# --- what moves ------------------------------------------------------------------------------------


def _methods(resolver: Any, namespace: str = "") -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (name with namespace, methods that may lag) of each URL."""
    for pattern in resolver.url_patterns:
        if hasattr(pattern, "url_patterns"):
            yield from _methods(
                pattern, f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            )
        else:
            view = getattr(pattern.callback, "view_class", pattern.callback)
            yield f"{namespace}{pattern.name}", getattr(view, "may_lag", frozenset())


METHODS = dict(_methods(get_resolver()))
LAGGING = [row for row in (*API, *PORTAL) if not row.is_stream and row.method in METHODS[row.url]]


def test_searches_lists_and_exports_are_those_that_move() -> None:
    assert {row.url.partition(":")[0] for row in LAGGING} >= {"api", "collections", "datasets", "tools"}
    assert "api:search" in {row.url for row in LAGGING}


@pytest.mark.parametrize("row", LAGGING, ids=str)
def test_a_read_that_may_lag_is_served_whole_by_the_replica(row: Row, standby: Standby) -> None:
    side, role = Side(), least(row.action)
    if row.before is not None:
        row.before(side, role)
    url_arguments(row, slug=side.tenant.slug, ids=side, role=role)
    client = key_client(side, sorted(KEY_SCOPES)) if row.url.startswith("api:") else signed_in(side, role)
    if row.url.startswith("api:"):
        role = "owner"
        url_arguments(row, slug=side.tenant.slug, ids=side, role=role)
    standby.caught_up()
    before, read = standby.statements("pg_is_in_recovery()"), standby.statements("SET LOCAL ROLE")
    with capture_logs() as logs:
        response = call(client, replace(row, before=None), slug=side.tenant.slug, ids=side, role=role)
    assert response.status_code == row.ok
    assert [line for line in logs if line["event"].startswith("replica_")] == []
    assert standby.statements("pg_is_in_recovery()") == before + 1
    assert standby.statements("SET LOCAL ROLE") > read + 1
    assert replica.watch.reason == ""


def test_an_export_is_read_from_the_replica_batch_by_batch(
    world: World, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runs import call_log
    from runs.models import ToolCall

    monkeypatch.setattr(call_log, "EXPORT_BATCH", 2)
    side = Side(world.tenant)
    call_row = side.row("runs.ToolCall", "owner")
    with platform_scope():
        for _ in range(4):
            make_row(
                ToolCall, world.tenant, side.user("owner"), run=call_row.run, user_id=side.user("owner").pk
            )
    client = signed_in(side, "owner")
    standby.caught_up()
    before = standby.statements('FROM "runs_toolcall"')
    response = client.get(reverse("tools:calls-file", kwargs={"tenant_slug": world.tenant.slug}))
    lines = b"".join(response).decode().splitlines()
    assert len(lines) == 1 + 5
    assert standby.statements('FROM "runs_toolcall"') == before + 4  # 2, 2, 1 and none


# --- one's own writes --------------------------------------------------------------------------------


def test_own_writes_are_seen_while_others_are_shown_what_was(world: World, standby: Standby) -> None:
    mine, theirs = world.keyed(world.owner), world.keyed(world.other)
    page = world.client(world.owner)
    assert names(mine) == names(theirs) == ["Old"]
    standby.pause()
    made = mine.post(reverse("api:collections-list"), {"name": "New"}, content_type="application/json")
    assert made.status_code == 201
    before = standby.statements(LISTED)
    assert names(mine) == ["New", "Old"]
    assert [c.name for c in page.get(world.page("list")).context["collections"]].count(
        "New"
    ) == 1  # by a session
    assert standby.statements(LISTED) == before
    assert names(theirs) == ["Old"]
    assert standby.statements(LISTED) > before
    standby.resume()
    before = standby.statements(LISTED)
    assert names(mine) == names(theirs) == ["New", "Old"]
    assert standby.statements(LISTED) > before + 1


def test_a_page_posted_is_a_write_of_ones_own(world: World, standby: Standby) -> None:
    page = world.client(world.owner)
    standby.pause()
    assert page.post(world.page("create"), POSTED).status_code == 302
    assert {c.name for c in page.get(world.page("list")).context["collections"]} == {"Old", "Posted"}


def test_who_deletes_never_sees_it_again(world: World, standby: Standby) -> None:
    mine, theirs = world.keyed(world.owner), world.keyed(world.other)
    standby.caught_up()
    standby.pause()
    gone = mine.delete(reverse("api:collections-detail", kwargs={"pk": world.collection.pk}))
    assert gone.status_code == 204
    assert names(mine) == []
    assert names(theirs) == ["Old"]  # at most for the lag
    standby.resume()
    assert names(theirs) == []


def test_a_search_is_no_write(world: World, standby: Standby) -> None:
    client = world.keyed()
    standby.caught_up()
    assert (
        client.post(reverse("api:search"), {"query": "x"}, content_type="application/json").status_code == 200
    )
    with tenant_scope(world.tenant.pk):
        assert not WriteMark.objects.filter(writer=f"user:{world.owner.user_id}").exists()


def test_an_account_page_counts_for_all_workspaces_of_its_person(world: World, standby: Standby) -> None:
    world.client(world.owner).post(reverse("account_change_password"), {})
    with tenant_scope(world.tenant.pk):
        assert WriteMark.objects.filter(writer=f"user:{world.owner.user_id}").count() == 1


def test_marks_end(world: World) -> None:
    write_noted(actor_of(world.owner))
    with platform_scope():
        assert marks_expire() == 0
        WriteMark.objects.update(written_at="2020-01-01T00:00:00Z")
    assert marks_expire() > 0
    with platform_scope():
        assert not WriteMark.objects.exists()


def test_a_mark_beyond_the_log_is_one_of_another_server(world: World, standby: Standby) -> None:
    write_noted(actor_of(world.owner))
    with tenant_scope(world.tenant.pk):
        WriteMark.objects.update(position=2**62)
    client, before = world.keyed(), standby.statements(LISTED)
    wait_for(lambda: names(client) and standby.statements(LISTED) > before, "a read of the replica")


# --- behind, away, back ----------------------------------------------------------------------------------


def test_a_replica_too_far_behind_is_not_read(world: World, standby: Standby, settings: Any) -> None:
    theirs = world.keyed(world.other)
    standby.caught_up()
    standby.pause()
    new_collection(world, "Later")
    assert names(theirs) == ["Old"]
    settings.REPLICA_LAG_S = -1  # whatever the clocks say, it is further behind
    before = standby.statements(LISTED)
    assert names(theirs) == ["Later", "Old"]
    assert standby.statements(LISTED) == before


def test_a_dead_replica_fails_no_page_and_comes_back_by_itself(world: World, standby: Standby) -> None:
    page, rest = world.client(world.owner), world.keyed()
    assert page.get(world.page("list")).status_code == 200
    standby.kill()
    for _ in range(20):
        assert page.get(world.page("list")).status_code == 200
        assert names(rest) == ["Old"]
    found = Client().get("/readyz").json()["checks"]["replica"]
    assert found["ok"]
    assert found["detail"].startswith("away")
    assert "127.0.0.1" not in json.dumps(found)
    told = check_replica()
    assert not told.ok
    assert "refused" in told.detail
    standby.start()
    assert replica.watch.seen.wait(PATIENCE_S)
    before = standby.statements(LISTED)
    wait_for(lambda: names(rest) and standby.statements(LISTED) > before, "a read of the replica")
    assert Client().get("/readyz").json()["checks"]["replica"]["detail"] == "in use"
    assert {c.name: c.ok for c in examine()}["replica"]


@pytest.mark.parametrize("door", ["page", "rest", "search"])
def test_a_replica_killed_in_the_middle_of_a_request_fails_nothing(
    door: str, world: World, standby: Standby
) -> None:
    killed: list[str] = []

    def kill(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if LISTED in sql and not killed:
            killed.append(sql)
            standby.kill()
        return execute(sql, *rest)

    client = world.client(world.owner) if door == "page" else world.keyed()
    standby.caught_up()
    with connections[replica.REPLICA].execute_wrapper(kill):
        if door == "page":
            assert b"Old" in client.get(world.page("list")).content
        elif door == "rest":
            assert names(client) == ["Old"]
        else:
            asked = {"query": "what", "collections": [world.collection.pk]}
            found = client.post(reverse("api:search"), asked, content_type="application/json")
            assert found.status_code == 200
    assert len(killed) == 1
    assert not replica.watch.is_there()


def test_a_read_that_was_cancelled_is_no_death(world: World, standby: Standby) -> None:
    tries: list[str] = []

    def read() -> str:
        tries.append(connection.alias)
        if len(tries) == 1:
            with connection.cursor() as cursor:
                cursor.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
        return "read"

    with capture_logs() as logs:
        assert may_lag_read(actor_of(world.owner), read) == "read"
    assert tries == ["replica", "default"]
    assert replica.watch.is_there()
    assert [line["event"] for line in logs] == ["replica_read_failed"]


# --- what must not move ------------------------------------------------------------------------------------


def test_a_write_in_such_a_read_is_refused_by_the_replica_and_done_once(
    world: World, standby: Standby
) -> None:
    def read() -> int:
        with tenant_scope(world.tenant.pk):
            Collection.objects.filter(pk=world.collection.pk).update(description="touched")
        return 1

    with capture_logs() as logs:
        assert may_lag_read(actor_of(world.owner), read) == 1
    assert [line["event"] for line in logs] == ["replica_read_failed"]
    assert "read-only" in logs[0]["error"]


def test_rights_and_money_stay_with_the_primary(world: World, standby: Standby) -> None:
    def read() -> list[str]:
        found = [connection.alias]
        with primary_reads():
            found.append(connection.alias)
            with primary_reads():
                found.append(connection.alias)
            with tenant_scope(world.tenant.pk), transaction.atomic():
                Collection.objects.filter(pk=world.collection.pk).update(description="paid")
        return [*found, connection.alias]

    assert may_lag_read(actor_of(world.owner), read) == ["replica", "default", "default", "replica"]
    assert connection.alias == "default"


def test_a_transaction_stays_where_it_began(world: World, standby: Standby) -> None:
    with transaction.atomic():
        assert may_lag_read(actor_of(world.owner), lambda: connection.alias) == "default"
    assert may_lag_read(actor_of(world.owner), lambda: connection.alias) == "replica"


def test_what_the_replica_has_not_yet_is_looked_for_on_the_primary(world: World, standby: Standby) -> None:
    theirs = world.client(world.other)
    standby.caught_up()
    standby.pause()
    made = new_collection(world, "Linked")
    assert theirs.get(world.page("chunks", pk=made.pk)).status_code == 200


def test_a_row_from_the_replica_is_written_to_the_primary(world: World, standby: Standby) -> None:
    def read() -> Collection:
        with tenant_scope(world.tenant.pk):
            return Collection.objects.get(pk=world.collection.pk)

    row = may_lag_read(actor_of(world.owner), read)
    row.description = "changed"
    with tenant_scope(world.tenant.pk):
        row.save()
        row.refresh_from_db()
    assert row.description == "changed"


@pytest.mark.parametrize("leads_to", ["the primary", "nowhere"])
def test_an_address_of_no_replica_is_never_read(
    leads_to: str, world: World, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = standby.primary.url if leads_to == "the primary" else "postgresql://x@127.0.0.1:1/groundwork"
    wrong = {**connections.settings[replica.REPLICA], **replica_settings(url, pool=False)}
    replica.watch.forget()
    monkeypatch.setitem(connections.settings, replica.REPLICA, wrong)
    connections[replica.REPLICA].close()
    del connections[replica.REPLICA]
    try:
        assert names(world.keyed()) == ["Old"]
        wait_for(lambda: replica.watch.reason not in ("", replica.NOT_LOOKED), "a look")
        assert not replica.watch.is_there()
        problem = check_replica()
        assert not problem.ok
        assert ("isn't a replica" in problem.detail) == (leads_to == "the primary")
        with replica.reads_turned(), pytest.raises((replica.ReplicaUnfit, OperationalError)):
            replica.freshness_require(replica.PrimaryPosition(0, 0, None))  # type: ignore[arg-type]
    finally:
        replica.watch.forget()
        del connections[replica.REPLICA]


def test_a_replica_of_another_server_is_refused(standby: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "_SYSTEM", "SELECT random()")
    assert "another database server" in replica.replica_problem()


def test_without_a_replica_nothing_is_sent(
    world: World, standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.keyed()
    monkeypatch.delitem(connections.settings, replica.REPLICA)
    sent: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        sent.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        assert names(client) == ["Old"]
        client.post(reverse("api:collections-list"), {"name": "New"}, content_type="application/json")
    assert sent
    assert not [sql for sql in sent if "lsn" in sql or "writemark" in sql]


# --- several web processes, with pools -----------------------------------------------------------------------


def test_own_writes_hold_across_web_processes_and_none_fails_without_the_replica(
    world: World, standby: Standby, tmp_path: Path
) -> None:
    key = world.key()
    environment = {
        "GROUNDWORK_REPLICA_URL": standby.url,
        "GROUNDWORK_REPLICA_LAG_SECONDS": str(PATIENT_LAG_S),
    }
    webs = [Stack(_folder(tmp_path / name), **environment) for name in ("one", "two")]
    try:
        for web in webs:
            web.start_web()
        for web in webs:  # each looks for the replica by itself
            wait_for(partial(_in_use, web), "a web process to find the replica")
            _reads_move(standby, web, key, ["Old"])
        standby.pause()
        _posted(webs[0], key, "New")
        assert [_listed(web, key) for web in webs] == [["New", "Old"], ["New", "Old"]]
        standby.resume()
        standby.kill()
        with ThreadPoolExecutor(8) as askers:
            found = list(askers.map(lambda n: _listed(webs[n % 2], key), range(80)))
        assert found == [["New", "Old"]] * 80
        for web in webs:
            assert web.get("/readyz") == 200
            assert _replica_told(web).startswith("away")
        standby.start()
        for web in webs:
            wait_for(partial(_in_use, web), "a web process to find the replica again")
            _reads_move(standby, web, key, ["New", "Old"])
    finally:
        for web in webs:
            web.stop()


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _asked(web: Stack, path: str, key: str = "", body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own server
        web.url + path, data, {**headers, "Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:  # noqa: S310
        return json.load(response)


def _replica_told(web: Stack) -> str:
    return str(_asked(web, "/readyz")["checks"]["replica"]["detail"])


def _in_use(web: Stack) -> bool:
    return _replica_told(web) == "in use"


def _listed(web: Stack, key: str) -> list[str]:
    return sorted(row["name"] for row in _asked(web, reverse("api:collections-list"), key)["results"])


def _reads_move(standby: Standby, web: Stack, key: str, expected: list[str]) -> None:
    """Wait until the process reads from the replica; what it answers has to be right each time.

    A replica that has just started may be fit a moment later than it answers: it knows no time of a commit before it
    has replayed one, and other programs write to the primary meanwhile.
    """

    def moved() -> bool:
        before = standby.statements(LISTED)
        assert _listed(web, key) == expected
        return standby.statements(LISTED) > before

    wait_for(moved, "a read of the replica")


def _posted(web: Stack, key: str, name: str) -> None:
    assert _asked(web, reverse("api:collections-list"), key, {"name": name})["name"] == name
