"""Audit events and reads on their way to other systems: format, order, refusals, and nothing lost when both sides are killed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from apps.collections.models import Document
from audit import pump
from audit.models import AuditStream, ContentRead
from audit.ocsf import event_ocsf, read_ocsf
from audit.pump import pump_round, stream_send
from audit.reads import content_read, reads_number
from audit.selectors import StreamPlace, events_after, owners_reader, stream_batch
from audit.services import stream_create, stream_delete, streams_of_operator_ensure
from audit.sinks import NotTaken, file_take, syslog_line, syslog_take
from basics.errors import Denied, Invalid, Missing
from tenancy.models import AuditEvent, Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from tests.audit.relay import Relay, order_kept, relayed
from tests.cast import Cast, make_cast
from tests.certificates import certificate
from tests.factories import actor_of
from tests.patience import PATIENCE_S
from tests.permissions.test_matrix import key_client
from tests.permissions.world import Side, make_row
from tests.servers import database_url, free_port
from webhooks.signing import secret_make


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def done(tenant: Tenant, actor: Any, count: int, action: str = "collection.update") -> None:
    """Write audit events, each in a transaction of its own, as acts do."""
    for number in range(count):
        with tenant_scope(tenant.pk), transaction.atomic():
            audit_record(tenant=tenant, actor=actor, action=action, object_name=f"no. {number}")


def read(actor: Any, count: int = 1) -> None:
    for number in range(count):
        content_read(actor=actor, door="api:search", kind="search", named={"pk": number}, documents=[number])


def whole(tenant: Tenant, *, most: int = 3) -> list[str]:
    """Return the uids of a workspace's stream, read in small pieces."""
    place, found = StreamPlace(), []
    while True:
        batch = stream_batch(tenant, place, most=most, reader=None)
        found += [event["metadata"]["uid"] for event in batch.events]
        place = StreamPlace.of(batch.place.cursor)
        if not batch.has_more:
            return found


# --- the stream ---------------------------------------------------------------------------------------


def test_a_stream_has_each_event_and_read_once_in_order_whatever_the_pieces(cast: Cast) -> None:
    actor = actor_of(cast.owner)
    done(cast.tenant, actor, 5)
    read(actor, 4)
    done(cast.tenant, actor, 3)
    found = whole(cast.tenant)
    assert found == whole(cast.tenant, most=500) == whole(cast.tenant, most=1)
    assert len(found) == len(set(found))
    assert order_kept(found)
    with tenant_scope(cast.tenant.pk):
        assert len(found) == AuditEvent.objects.count() + ContentRead.objects.count()
    assert all(uid.startswith(f"{cast.tenant.slug}:") for uid in found)


def test_a_read_that_is_committed_late_comes_late_and_is_not_lost(cast: Cast) -> None:
    """Ids are given before the commit: a reader that went by them would pass over one that commits after it looked."""
    actor = actor_of(cast.owner)
    opened, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        from django.db import connection

        try:
            with transaction.atomic():
                read(actor)
                opened.set()
                assert go_on.wait(PATIENCE_S)
        finally:
            connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert opened.wait(PATIENCE_S)
    read(actor, 2)
    first = [uid for uid in whole(cast.tenant) if ":reads:" in uid]
    assert [uid.rpartition(":")[2] for uid in first] == ["1", "2"]
    go_on.set()
    thread.join()
    assert [uid.rpartition(":")[2] for uid in whole(cast.tenant) if ":reads:" in uid] == ["1", "2", "3"]


def test_rest_follows_with_a_cursor_and_asks_for_the_right(db: None) -> None:
    side = Side()
    actor = actor_of(side.people["owner"])
    read(actor, 3)
    client = key_client(side, ["audit.read"])
    seen: list[str] = []
    cursor = ""
    while True:
        answer = client.get(f"/api/v1/audit/events?after={cursor}&limit=2").json()
        seen += [event["metadata"]["uid"] for event in answer["events"]]
        cursor = answer["cursor"]
        if not answer["has_more"]:
            break
    assert order_kept(seen)
    assert len([uid for uid in seen if ":reads:" in uid]) == 3
    read(actor)
    (new,) = client.get("/api/v1/audit/events", {"after": cursor}).json()["events"]
    assert new["metadata"]["sequence"] == 4
    assert client.get("/api/v1/audit/events", {"after": "e1"}).status_code == 400
    assert client.get("/api/v1/audit/events", {"limit": 501}).status_code == 400
    assert key_client(side, ["search.run"]).get("/api/v1/audit/events").status_code == 403
    other = Side()
    read(actor_of(other.people["owner"]))
    others = key_client(other, ["audit.read"]).get("/api/v1/audit/events").json()["events"]
    assert {event["metadata"]["tenant_uid"] for event in others} == {other.tenant.slug}


def test_names_of_documents_limited_to_others_stay_with_the_operator(cast: Cast) -> None:
    """The portal's log withholds them from an admin; what goes to another system of theirs does too."""
    document = make_row(Document, cast.tenant, cast.user("owner"))
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        Document.objects.filter(pk=document.pk).update(is_restricted=True)
        audit_record(
            tenant=cast.tenant,
            actor=actor_of(cast.owner),
            action="document.describe",
            object=document,
            object_name="Secret merger.pdf",
            data={"title": "Secret merger"},
        )

    def told(reader: Any) -> str:
        return json.dumps(stream_batch(cast.tenant, StreamPlace(), most=500, reader=reader).events)

    assert "Secret merger" in told(None)
    assert "Secret merger" not in told(owners_reader(cast.tenant.pk))
    assert "document.describe" in told(owners_reader(cast.tenant.pk))


def test_a_key_that_is_limited_to_collections_reads_no_trail(db: None) -> None:
    side = Side()
    actor = replace(actor_of(side.people["owner"]), collections=frozenset({1}))
    with pytest.raises(Denied):
        events_after(tenant=side.tenant, actor=actor, cursor="", most=5)


# --- OCSF ----------------------------------------------------------------------------------------------

# What OCSF 1.3.0 requires of each class (schema.ocsf.io/1.3.0), beside what all events have.
BASE = {"activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid"}
REQUIRED = {
    3001: {"user"},
    3002: {"user", "service"},
    3004: {"entity"},
    6003: {"actor", "api", "src_endpoint"},
    6005: {"actor", "src_endpoint"},
}
ACTIVITIES = {3001: {1, 6, 7, 99}, 3002: {1, 2}, 3004: {1, 2, 3, 4}, 6003: {1, 2, 3, 4}, 6005: {1, 4}}


def assert_ocsf(event: dict[str, Any]) -> None:
    """Fail unless an event has what its class requires, with numbers that agree."""
    uid = event["class_uid"]
    assert BASE | REQUIRED[uid] <= set(event), uid
    assert event["activity_id"] in ACTIVITIES[uid]
    assert event["type_uid"] == uid * 100 + event["activity_id"]
    assert event["category_uid"] == uid // 1000
    assert {"version", "product", "uid", "sequence"} <= set(event["metadata"])
    assert event["metadata"]["version"] == "1.3.0"
    assert isinstance(event["time"], int)
    if uid == 6005:
        assert {"database", "databucket", "table"} & set(event), "at least one"
    json.dumps(event)


@pytest.mark.parametrize(
    ("action", "class_uid", "activity"),
    [
        ("member.add", 3001, 1),
        ("member.role_change", 3001, 7),
        ("member.leave", 3001, 6),
        ("session.sign_in", 3002, 1),
        ("session.sign_out", 3002, 2),
        ("passkey.sign_in", 3002, 1),
        ("key.create", 3004, 1),
        ("key.revoke", 3004, 4),
        ("tool_grant.delete", 3004, 4),
        ("retention.set", 3004, 1),
        ("document.upload", 6003, 1),
        ("document.delete", 6003, 4),
        ("conversation.export", 6003, 2),
        ("collection.update", 6003, 3),
    ],
)
def test_each_act_has_its_class_and_all_that_the_class_requires(
    db: None, action: str, class_uid: int, activity: int
) -> None:
    side = Side()
    event = AuditEvent(
        tenant=side.tenant,
        at=datetime.now(UTC),
        actor_kind="user",
        actor_name="a@example.org",
        user_id=7,
        action=action,
        seq=5,
        hash="h",
        data={"role": "admin"},
    )
    told = event_ocsf(event, slug="acme")
    assert_ocsf(told)
    assert (told["class_uid"], told["activity_id"]) == (class_uid, activity)
    assert told["metadata"]["uid"] == "acme:audit:5"
    assert told["unmapped"] == {"data": {"role": "admin"}, "hash": "h", "previous_hash": ""}


@pytest.mark.parametrize(
    ("protocol", "number"), [("oidc", (4, "OpenID")), ("saml", (5, "SAML")), ("", (0, "Unknown"))]
)
def test_a_company_sign_in_names_its_protocol_and_a_refusal_its_reason(protocol: str, number: Any) -> None:
    data = {"protocol": protocol} if protocol else {}  # events of before have none
    row = AuditEvent(
        at=datetime.now(UTC), seq=1, action="sso.sign_in", actor_kind="user", user_id=4, data=data
    )
    told = event_ocsf(row, slug="acme")
    assert_ocsf(told)
    assert (told["auth_protocol_id"], told["auth_protocol"]) == number
    assert told["status_id"] == 1
    row.action, row.actor_kind, row.user_id = "sso.refuse", "system", None
    row.data = {**data, "code": "sso_domain", "reason": "not verified"}
    told = event_ocsf(row, slug="acme")
    assert_ocsf(told)
    assert (told["status_id"], told["status_code"], told["status_detail"]) == (
        2,
        "sso_domain",
        "not verified",
    )
    assert told["user"] == {"name": "unknown"}


def test_a_read_is_datastore_activity(db: None) -> None:
    row = ContentRead(
        at=datetime.now(UTC),
        door="api:search",
        kind="search",
        actor_kind="api_key",
        api_key_id=3,
        seq=9,
        ip="9.9.9.9",
    )
    told = read_ocsf(row, slug="acme")
    assert_ocsf(told)
    assert (told["type_uid"], told["src_endpoint"]) == (600504, {"ip": "9.9.9.9"})
    row.kind = "file"
    assert read_ocsf(row, slug="acme")["type_uid"] == 600501


# --- who, and where to -----------------------------------------------------------------------------------


def test_only_an_owner_adds_a_stream_and_only_to_public_addresses(db: None) -> None:
    side = Side()
    owner, admin = actor_of(side.people["owner"]), actor_of(side.people["admin"])
    with pytest.raises(Denied):
        stream_create(tenant=side.tenant, actor=admin, url="https://siem.example.org/x")
    for url in (
        *(
            "http://127.0.0.1/x",
            "https://169.254.169.254/latest",
            "syslog+tcp://10.0.0.1:601",
            "file:///etc/passwd",
        ),
        *(
            "syslog+tls://siem.example.org",
            "syslog+tls://a:b@siem.example.org:6514",
            "ftp://h/x",
            "nothing",
            "",
        ),
        *(
            "syslog+tls://siem.example.org:6514/path",
            "syslog+tls://siem.example.org:99999",
        ),
    ):
        with pytest.raises(Invalid):
            stream_create(tenant=side.tenant, actor=owner, url=url)
    row, secret = stream_create(tenant=side.tenant, actor=owner, url="https://93.184.216.34/x")
    assert secret.startswith("whsec_")
    assert secret.encode() not in bytes(row.secret_encrypted or b"")
    syslog, none = stream_create(tenant=side.tenant, actor=owner, url="syslog+tls://93.184.216.34:6514")
    assert (syslog.kind, none) == ("syslog", "")
    stream_create(tenant=side.tenant, actor=owner, url="https://93.184.216.34/y")
    with pytest.raises(Invalid):
        stream_create(tenant=side.tenant, actor=owner, url="https://93.184.216.34/z")
    other = Side()
    with pytest.raises(Missing):
        stream_delete(tenant=other.tenant, actor=actor_of(other.people["owner"]), pk=row.pk)
    stream_delete(tenant=side.tenant, actor=owner, pk=row.pk)
    with tenant_scope(side.tenant.pk):
        acts = AuditEvent.objects.filter(action__startswith="audit_stream").values_list("action", flat=True)
        assert sorted(acts) == ["audit_stream.create"] * 3 + ["audit_stream.delete"]


@pytest.mark.parametrize(
    "url", ["syslog+tcp://127.0.0.1:601", "syslog+tcp://localhost:601", "https://localhost/x"]
)
def test_an_address_inside_is_refused_when_it_is_sent_to(cast: Cast, url: str) -> None:
    """A row may be older than a rule, and a name may lead elsewhere by then: each batch asks again where it may go."""
    with tenant_scope(cast.tenant.pk):
        row = AuditStream.objects.create(
            tenant=cast.tenant, kind=url.partition("+")[0].partition(":")[0], url=url
        )
    read(actor_of(cast.owner))
    assert stream_send(row.pk, cast.tenant.pk) == 0
    with tenant_scope(cast.tenant.pk):
        row.refresh_from_db()
    assert row.failures == 1
    assert row.error
    assert row.read_seq == 0
    assert row.lease == ""


def test_the_operators_setting_makes_a_stream_in_each_workspace_and_rests_without_it(
    cast: Cast, settings: Any
) -> None:
    settings.AUDIT_STREAM = "file:///srv/audit.jsonl"
    for _ in range(2):
        streams_of_operator_ensure()
    with platform_scope():
        rows = list(AuditStream.objects.filter(is_operators=True))
        assert len(rows) == Tenant.objects.count()
        assert {row.kind for row in rows} == {"file"}
    settings.AUDIT_STREAM = ""
    streams_of_operator_ensure()
    with platform_scope():
        assert not AuditStream.objects.filter(is_operators=True, is_enabled=True).exists()


# --- sinks -----------------------------------------------------------------------------------------------


def test_a_file_gets_lines_once_and_half_a_line_of_a_killed_writer_goes(
    cast: Cast, settings: Any, tmp_path: Path
) -> None:
    path = tmp_path / "siem" / "audit.jsonl"
    settings.AUDIT_STREAM = f"file://{path}"
    read(actor_of(cast.owner), 3)
    assert pump_round() >= 3
    first = path.read_bytes()
    assert pump_round() == 0
    path.write_bytes(first + b'{"metadata": {"uid": "half')
    read(actor_of(cast.owner))
    assert pump_round() == 1
    uids = [json.loads(line)["metadata"]["uid"] for line in path.read_text().splitlines()]
    assert len(uids) == len(set(uids))
    assert order_kept(uids)
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_without_any_whole_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 200_000)
    file_take(path, [{"a": 1}])
    assert path.read_bytes() == b'{"a":1}\n'
    with pytest.raises(NotTaken):
        file_take(tmp_path, [{"a": 1}])


def test_syslog_is_rfc_5424_with_the_length_in_front() -> None:
    event = {"time": 1_700_000_000_123, "class_name": "Datastore Activity", "text": "ä"}
    size, _, message = syslog_line(event, host="box").partition(b" ")
    assert int(size) == len(message)
    assert message.startswith(
        b"<110>1 2023-11-14T22:13:20.123Z box groundwork - DatastoreActivity - \xef\xbb\xbf{"
    )
    assert json.loads(message.partition(b"\xef\xbb\xbf")[2]) == event


def test_a_syslog_receiver_that_breaks_off_has_not_taken_the_events() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def break_off() -> None:
            line, _ = server.accept()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            line.recv(10)
            line.close()  # with the rest unread: a reset

        thread = threading.Thread(target=break_off)
        thread.start()
        event = {"time": 0, "class_name": "X", "text": "a" * 100_000}
        with pytest.raises(NotTaken):
            syslog_take(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}", [event], policy=None)
        thread.join()
    with pytest.raises(NotTaken):
        syslog_take("syslog+tcp://127.0.0.1:1", [event], policy=None)


# --- kill -9 -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["webhook", "syslog"])
def relay(request: pytest.FixtureRequest, cast: Cast, tmp_path: Path, settings: Any) -> Iterator[Relay]:
    port = free_port()
    if request.param == "webhook":
        secret, url = secret_make(), f"http://127.0.0.1:{port}/siem"
    else:
        secret, url = str(certificate(tmp_path)), f"syslog+tls://127.0.0.1:{port}"
    made = Relay(
        request.param,
        tmp_path,
        {
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "GROUNDWORK_DATA_DIR": str(settings.DATA_DIR),
            "GROUNDWORK_SECRET_KEY": settings.SECRET_KEY,
            "GROUNDWORK_AUDIT_STREAM": url,
            "GROUNDWORK_AUDIT_STREAM_SECRET": secret if request.param == "webhook" else "",
            "SSL_CERT_FILE": secret if request.param == "syslog" else "",
        },
        port,
        secret,
    )
    yield made
    made.close()
    print((tmp_path / "relay.log").read_text(errors="replace")[-3000:])  # noqa: T201


@pytest.mark.servers
def test_nothing_is_lost_and_the_order_is_kept_when_both_sides_are_killed(relay: Relay, cast: Cast) -> None:
    actor = actor_of(cast.owner)
    done(cast.tenant, actor, 60)
    read(actor, 60)
    reads_number(cast.tenant.pk)
    with platform_scope():
        expected = {
            f"{event.tenant.slug}:audit:{event.seq}" for event in AuditEvent.objects.select_related("tenant")
        } | {f"{cast.tenant.slug}:reads:{number}" for number in range(1, 61)}
    arrived = relayed(relay, expected, kills=3, patience_s=PATIENCE_S)
    assert set(arrived.uids) == expected
    assert order_kept(arrived.uids)
    assert (arrived.sender_kills, arrived.receiver_kills) == (3, 3)


def test_a_lease_keeps_a_second_worker_away(cast: Cast, settings: Any, tmp_path: Path) -> None:
    settings.AUDIT_STREAM = f"file://{tmp_path}/a.jsonl"
    read(actor_of(cast.owner))
    streams_of_operator_ensure()
    with platform_scope():
        row = AuditStream.objects.get(tenant=cast.tenant, is_operators=True)
    with tenant_scope(cast.tenant.pk):
        assert pump._leased(row.pk, "one")
        assert not pump._leased(row.pk, "two")
    assert stream_send(row.pk, cast.tenant.pk) == 0
    assert not (tmp_path / "a.jsonl").exists()


def test_what_is_sent_is_on_disk(cast: Cast, settings: Any, tmp_path: Path) -> None:
    """An event can be seen a moment before: a receiver would have what a crash takes back, and other events in its place."""
    settings.AUDIT_STREAM = f"file://{tmp_path / 'events'}"
    streams_of_operator_ensure()
    written: list[str] = []
    taken: list[bool] = []

    def batch(*given: Any, **options: Any) -> Any:
        if not written:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL synchronous_commit TO off")
                done(cast.tenant, actor_of(cast.owner), 1)
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
                written.append(cursor.fetchone()[0])
        return stream_batch(*given, **options)

    def take(*_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_wal_flush_lsn() >= %s::pg_lsn", written)
            taken.append(cursor.fetchone()[0])

    with pytest.MonkeyPatch.context() as patch, platform_scope(), connection.cursor() as cursor:
        patch.setattr(pump, "stream_batch", batch)
        patch.setattr(pump, "take", take)
        cursor.execute("SET synchronous_commit TO on")  # as it is outside of tests
        try:
            stream = AuditStream.objects.get(tenant=cast.tenant)
            assert stream_send(stream.pk, cast.tenant.pk) > 0
        finally:
            cursor.execute("RESET synchronous_commit")
    assert taken == [True]


def test_the_page_shows_a_new_secret_once(db: None) -> None:
    side = Side()
    client = Client()
    client.force_login(side.user("owner"), "django.contrib.auth.backends.ModelBackend")
    page = f"/t/{side.tenant.slug}/settings/audit/streams/"
    assert "No stream yet" in client.get(page).content.decode()
    answer = client.post(page, {"action": "add", "url": "https://93.184.216.34/x", "has_reads": "on"})
    assert "whsec_" in answer.content.decode()
    again = client.get(page).content.decode()
    assert "whsec_" not in again
    assert "https://93.184.216.34/x" in again
    refused = client.post(page, {"action": "add", "url": "http://127.0.0.1/x"})
    assert refused.status_code == 422
    assert client.post(page, {"action": "dance"}).status_code == 404
