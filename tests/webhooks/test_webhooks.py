"""Events reach a real receiver: signed, at least once, in order, and nowhere they may not go."""

from __future__ import annotations

import base64
import calendar
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from apps.collections.documents.tasks import document_ingest_ended
from apps.collections.models import Document, DocumentStatus
from basics.errors import Conflict, Denied, Invalid
from erasure.removal import removal_round
from jobs.models import Job, JobStatus
from jobs.runner import run_here
from runs.approvals.parking import pending_store
from runs.models import Run
from runs.services import run_abandon, run_create
from tenancy.models import AuditEvent
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.factories import make_collection
from tests.patience import PATIENCE_S
from tests.permissions.test_matrix import assert_error, key_client
from tests.permissions.world import Side
from toolloop.deferred import PendingCall
from toolloop.messages import ToolCall
from webhooks import sending, services
from webhooks.models import SUBSCRIBABLE, DeliveryStatus, Event, Webhook, WebhookDelivery
from webhooks.retention import DELIVERIES
from webhooks.signing import secret_make, signed_headers
from webhooks.tasks import MAX_ATTEMPTS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
pytestmark = pytest.mark.django_db(transaction=True)


class Receiver:
    """A real server that remembers what it was sent; ``answer`` says what it does."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.answer: Callable[[BaseHTTPRequestHandler], None] = lambda handler: reply(handler, 204)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.calls.append((dict(self.headers), body))
                receiver.answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.calls]


def reply(handler: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def cast(transactional_db: None, settings: Any) -> Cast:
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    return make_cast()


def make(cast: Cast, url: str, *events: str) -> tuple[Webhook, str]:
    return services.webhook_create(
        tenant=cast.tenant, actor=cast.actor("admin"), url=url, events=events or [Event.RUN_FINISHED]
    )


def emit(cast: Cast, number: int = 1, event: Event = Event.RUN_FINISHED) -> int:
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        return services.webhook_emit(
            tenant_id=cast.tenant.pk, event=event, object_key=f"run:{number}", data={"run": number}
        )


def work(cast: Cast) -> list[str]:
    """Run every waiting delivery job once, due or not; returns their states afterwards."""
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(status=JobStatus.QUEUED).update(run_after=timezone.now())
        jobs = list(Job.objects.filter(status=JobStatus.QUEUED, kind=services.JOB_KIND).order_by("pk"))
    return [run_here(cast.tenant.pk, job.pk).status for job in jobs]


def deliveries(cast: Cast) -> list[WebhookDelivery]:
    with tenant_scope(cast.tenant.pk):
        return list(WebhookDelivery.objects.order_by("pk"))


def documented_verify() -> Callable[..., bool]:
    """Return the function that docs/webhooks.md gives to receivers."""
    found = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found[1], names)  # noqa: S102 - our own page, as its readers run it
    verify: Callable[..., bool] = names["verify"]
    return verify


def test_event_arrives_signed_as_the_page_says(cast: Cast, receiver: Receiver):
    _, secret = make(cast, receiver.url)
    assert emit(cast, 12) == 1
    assert work(cast) == [JobStatus.SUCCEEDED]
    headers, body = receiver.calls[0]
    event = json.loads(body)
    assert (event["type"], event["workspace"], event["data"]) == (
        "run.finished",
        cast.tenant.slug,
        {"run": 12},
    )
    assert headers["webhook-id"] == event["id"]
    assert not [name for name in headers if name.lower().startswith("groundwork")]
    verify = documented_verify()
    assert verify(secret, body, headers)
    assert not verify(secret, body + b" ", headers)
    assert not verify(secret_make(), body, headers)
    old = str(int(headers["webhook-timestamp"]) - 600)
    assert not verify(secret, body, {**headers, "webhook-timestamp": old})
    assert not verify(secret, body, {**headers, "webhook-id": "another"})
    row = deliveries(cast)[0]
    assert (row.status, row.attempts, row.response_status, row.error) == ("delivered", 1, 204, "")


def test_headers_are_those_of_the_specification():
    """Its own worked example, written out here, so that a mistake of the library is seen as well."""
    key = b"a key of thirty-two bytes, plain"
    sent = datetime(2026, 11, 3, 12, 0, 5, tzinfo=UTC)
    secret = "whsec_" + base64.b64encode(key).decode()
    body = '{"type":"ping","data":{"name":"Zoë"}}'.encode()
    headers = signed_headers([secret], event_id="msg_1", body=body, sent_at=sent)
    stamp = str(calendar.timegm((2026, 11, 3, 12, 0, 5)))
    digest = hmac.new(key, b"msg_1." + stamp.encode() + b"." + body, hashlib.sha256).digest()
    assert headers == {
        "webhook-id": "msg_1",
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }
    assert len(base64.b64decode(secret_make().removeprefix("whsec_"), validate=True)) == 32


def test_after_a_rotation_both_secrets_verify_for_a_day(cast: Cast, receiver: Receiver):
    row, first = make(cast, receiver.url)
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("admin"), "pk": row.pk}
    verify = documented_verify()

    def verified(*secrets: str) -> list[bool]:
        emit(cast)
        work(cast)
        headers, body = receiver.calls[-1]
        return [verify(secret, body, headers) for secret in secrets]

    _, second = services.webhook_secret_rotate(**who)
    assert verified(first, second) == [True, True]
    _, third = services.webhook_secret_rotate(**who)
    assert verified(first, second, third) == [False, True, True]
    with tenant_scope(cast.tenant.pk):
        Webhook.objects.update(
            rotated_at=timezone.now() - timedelta(hours=services.ROTATION_HOURS, seconds=1)
        )
    assert verified(second, third) == [False, True]
    services.rotations_end()
    with tenant_scope(cast.tenant.pk):
        assert Webhook.objects.get().previous_secret_encrypted is None
    with pytest.raises(Denied):
        services.webhook_secret_rotate(tenant=cast.tenant, actor=cast.actor("member"), pk=row.pk)


def test_nothing_is_sent_when_the_act_is_undone(cast: Cast, receiver: Receiver):
    make(cast, receiver.url)

    def act() -> None:
        with tenant_scope(cast.tenant.pk), transaction.atomic():
            services.webhook_emit(
                tenant_id=cast.tenant.pk, event=Event.RUN_FINISHED, object_key="run:1", data={}
            )
            raise KeyError

    with pytest.raises(KeyError):
        act()
    assert deliveries(cast) == []
    assert work(cast) == []


def test_only_who_asked_for_the_event_is_told(cast: Cast, receiver: Receiver):
    make(cast, receiver.url, Event.INGESTION_FAILED)
    row, _ = make(cast, receiver.url, Event.RUN_FINISHED)
    services.webhook_update(
        tenant=cast.tenant, actor=cast.actor("admin"), pk=row.pk, values={"is_enabled": False}
    )
    assert emit(cast) == 0


def test_refused_event_is_tried_again_later_and_given_up_at_last(cast: Cast, receiver: Receiver):
    make(cast, receiver.url)
    emit(cast)
    receiver.answer = lambda handler: reply(handler, 500)
    assert work(cast) == [JobStatus.QUEUED]
    with tenant_scope(cast.tenant.pk):
        assert Job.objects.get().run_after > timezone.now()
    row = deliveries(cast)[0]
    assert (row.status, row.attempts, row.response_status) == ("queued", 1, 500)
    assert "status 500" in row.error
    for _ in range(MAX_ATTEMPTS - 1):
        work(cast)
    row = deliveries(cast)[0]
    assert (row.status, row.attempts) == ("failed", MAX_ATTEMPTS)
    assert work(cast) == []


def test_event_is_delivered_once_the_receiver_is_back(cast: Cast, receiver: Receiver):
    make(cast, receiver.url)
    emit(cast)
    receiver.answer = lambda handler: handler.connection.close()
    work(cast)
    assert deliveries(cast)[0].response_status is None
    receiver.answer = lambda handler: reply(handler, 200)
    assert work(cast) == [JobStatus.SUCCEEDED]
    assert deliveries(cast)[0].status == DeliveryStatus.DELIVERED
    first, second = receiver.events
    assert first == second


def test_events_of_one_object_stay_in_order_when_one_waits(cast: Cast, receiver: Receiver):
    make(cast, receiver.url, Event.RUN_FINISHED, Event.APPROVAL_NEEDED)
    receiver.answer = lambda handler: reply(handler, 503)
    emit(cast, 1, Event.APPROVAL_NEEDED)
    work(cast)
    receiver.calls.clear()
    receiver.answer = lambda handler: reply(handler, 200)
    emit(cast, 1, Event.RUN_FINISHED)
    with tenant_scope(cast.tenant.pk):
        newest = Job.objects.order_by("pk").last()
    assert newest is not None
    run_here(cast.tenant.pk, newest.pk)
    assert [e["type"] for e in receiver.events] == ["approval.needed", "run.finished"]
    work(cast)
    assert len(receiver.calls) == 2


def test_delivery_sets_the_deaths_of_workers_back(cast: Cast, receiver: Receiver):
    make(cast, receiver.url)
    emit(cast)
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(kind=services.JOB_KIND).update(deaths=2)
    assert work(cast) == [JobStatus.SUCCEEDED]
    with tenant_scope(cast.tenant.pk):
        assert Job.objects.get(kind=services.JOB_KIND).deaths == 0


@pytest.mark.parametrize("status", [301, 307, 400, 404])
def test_redirects_and_refusals_are_errors_and_not_followed(cast: Cast, receiver: Receiver, status: int):
    make(cast, receiver.url)
    emit(cast)
    receiver.answer = lambda handler: reply(handler, status, Location=receiver.url)
    work(cast)
    assert len(receiver.calls) == 1
    assert deliveries(cast)[0].response_status == status


def test_receiver_that_drips_or_floods_costs_little(
    cast: Cast, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sending, "SECONDS", 0.6)
    make(cast, receiver.url)
    emit(cast)

    def hang(handler: BaseHTTPRequestHandler) -> None:
        over.wait(PATIENCE_S)

    over = threading.Event()
    receiver.answer = hang
    work(cast)
    over.set()
    assert deliveries(cast)[0].status == DeliveryStatus.QUEUED

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(100_000):
                handler.wfile.write(b"x" * 10_000)
        except OSError:
            ended.set()

    ended = threading.Event()
    receiver.answer = flood
    assert work(cast) == [JobStatus.SUCCEEDED]
    assert ended.wait(PATIENCE_S), "the connection was not cut"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "https://user:pw@example.org/",
        "ftp://example.org/",
        "https://example.org:22/",
        "javascript:alert(1)",
        "",
    ],
)
def test_address_that_may_not_be_called_is_refused(cast: Cast, settings: Any, url: str):
    settings.FETCH_NETWORKS = []
    with pytest.raises(Invalid) as refused:
        make(cast, url)
    assert "url" in refused.value.data["fields"]


def test_name_that_leads_inside_is_not_called(cast: Cast, settings: Any):
    settings.FETCH_NETWORKS = []
    make(cast, "http://localhost/hook")
    emit(cast)
    work(cast)
    row = deliveries(cast)[0]
    assert row.response_status is None
    assert "no public address" in row.error


def test_refused_webhook_is_one_line_in_the_log(cast: Cast, settings: Any, caplog: pytest.LogCaptureFixture):
    """At each attempt, the last one too: nothing here is broken, so nobody has to read a traceback."""
    settings.FETCH_NETWORKS = []
    make(cast, "http://localhost/hook")
    emit(cast)
    with caplog.at_level("INFO"):
        work(cast)
        with tenant_scope(cast.tenant.pk):
            Job.objects.update(failures=MAX_ATTEMPTS - 1)
        work(cast)
    lines = [record for record in caplog.records if "job_" in record.getMessage()]
    assert any("job_failed" in record.getMessage() for record in lines)
    assert any("job_retry" in record.getMessage() for record in lines)
    assert not any(record.exc_info for record in caplog.records)
    assert "exc_info" not in caplog.text
    assert "Traceback" not in caplog.text


def test_secret_is_shown_once_and_kept_nowhere_readable(
    cast: Cast, receiver: Receiver, capfd: pytest.CaptureFixture[str]
):
    _, secret = make(cast, receiver.url)
    receiver.answer = lambda handler: reply(handler, 500)
    emit(cast)
    work(cast)
    with tenant_scope(cast.tenant.pk):
        kept = str(list(Webhook.objects.values())) + str(list(WebhookDelivery.objects.values()))
        kept += str(list(AuditEvent.objects.values())) + str(list(Job.objects.values()))
    written = capfd.readouterr()
    assert secret not in kept + written.out + written.err


def test_redelivery_is_the_same_event_again(cast: Cast, receiver: Receiver):
    row, _ = make(cast, receiver.url)
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("admin"), "pk": row.pk}
    emit(cast)
    with pytest.raises(Conflict):
        services.delivery_repeat(**who, delivery_pk=deliveries(cast)[0].pk)
    work(cast)
    services.delivery_repeat(**who, delivery_pk=deliveries(cast)[0].pk)
    work(cast)
    first, second = receiver.events
    assert first["id"] == second["id"]
    assert first["data"] == second["data"]
    assert [d.status for d in deliveries(cast)] == ["delivered", "delivered"]


def test_members_may_not_manage_webhooks(cast: Cast):
    with pytest.raises(Denied):
        services.webhook_create(
            tenant=cast.tenant, actor=cast.actor("member"), url="https://example.org", events=["run.finished"]
        )


def test_old_deliveries_are_forgotten(cast: Cast, receiver: Receiver):
    make(cast, receiver.url)
    for _ in range(2):
        emit(cast)
    work(cast)
    emit(cast)
    with tenant_scope(cast.tenant.pk):
        WebhookDelivery.objects.exclude(pk=deliveries(cast)[0].pk).update(created_at="2020-01-01T00:00Z")
    assert removal_round(DELIVERIES) == 1
    assert [d.status for d in deliveries(cast)] == ["delivered", "queued"]


# --- what is told --------------------------------------------------------------------------------


def test_runs_and_documents_tell_of_their_end(cast: Cast):
    make(cast, "https://example.org/hook", *SUBSCRIBABLE)
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        job = Job.objects.create(tenant=cast.tenant, kind="x", status="failed", error_code="worker_lost")
        run: Run = run_create(tenant=cast.tenant, actor=cast.actor("owner"), kind="c", model="extractive")
        run.job = job
        run.save()
        call = ToolCall("c1", "send_mail", {"to": "a"})
        pending_store(run, 0, [PendingCall(call, "approval", "because", None)])
        run_abandon(job=job)
        document = Document.objects.create(
            tenant=cast.tenant,
            collection=make_collection(cast.tenant),
            name="a",
            media_type="text/plain",
            size=1,
            sha256="0" * 64,
            file="x",
            job_id=job.pk,
        )
        job.payload = {"document": document.pk}
        document_ingest_ended(job)
        document.refresh_from_db()
        assert document.status == DocumentStatus.FAILED
    told = [(d.event, d.object_key, d.payload["data"].get("error_code")) for d in deliveries(cast)]
    assert told == [
        ("approval.needed", f"run:{run.pk}", None),
        ("run.finished", f"run:{run.pk}", "worker_lost"),
        ("ingestion.failed", f"document:{document.pk}", "worker_lost"),
    ]
    assert "because" not in str([d.payload for d in deliveries(cast)])


# --- REST ----------------------------------------------------------------------------------------


def test_webhook_by_rest_from_making_to_removal(receiver: Receiver, settings: Any):
    settings.FETCH_NETWORKS = ["127.0.0.0/8"]
    side = Side()
    client: Client = key_client(side, sorted(KEY_SCOPES))
    base = "/api/v1/webhooks"
    assert_error(client.post(base, {"url": receiver.url, "events": ["ping"]}, "application/json"), 400)
    made = client.post(base, {"url": receiver.url, "events": ["run.finished"]}, "application/json")
    assert made.status_code == 201, made.content
    ident, secret = made.json()["id"], made.json()["secret"]
    assert secret.encode() not in client.get(f"{base}/{ident}").content + client.get(base).content
    renewed = client.post(f"{base}/{ident}/rotate", {}, "application/json")
    assert renewed.status_code == 200
    assert renewed.json()["secret"] not in ("", secret)
    ping = client.post(f"{base}/{ident}/ping", {}, "application/json")
    assert (ping.status_code, ping.json()["status"]) == (202, "queued")
    with tenant_scope(side.tenant.pk):
        job = Job.objects.get(kind=services.JOB_KIND)
    run_here(side.tenant.pk, job.pk)
    log = client.get(f"{base}/{ident}/deliveries").json()["results"]
    assert [(d["event"], d["status"], d["response_status"]) for d in log] == [("ping", "delivered", 204)]
    again = client.post(f"{base}/{ident}/deliveries/{log[0]['id']}/redeliver", {}, "application/json")
    assert again.json()["event_id"] == log[0]["event_id"]
    assert client.delete(f"{base}/{ident}").status_code == 204
    assert_error(client.get(f"{base}/{ident}"), 404)
