"""The operator's page and the status page: who may read them, what they tell, and that a retry retries."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from apps.collections.models import Document, DocumentStatus
from backups.models import BackupResult
from basics.errors import Conflict
from config.operate import selectors
from config.operate.admin_groups import GROUPS
from config.operate.alerts import RULES, alerts_now
from config.operate.selectors import installation_read, lasted
from config.operate.status import overall, parts_now
from jobs import registry
from jobs.models import Job, JobStatus, Worker
from jobs.services import job_retry
from tenancy.actors import system_actor
from tenancy.models import AuditEvent, User
from tenancy.readings import Figure, readings
from tenancy.scope import platform_scope, tenant_scope
from tests.deploy.promql import alerts
from tests.factories import make_tenant
from tests.permissions.world import Side

PAGE = "/operate/"
RETRY = "/operate/retry/"


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing of what other tests read is kept."""
    selectors.checks_kept.forget()
    selectors.workspaces_kept.forget()
    readings.forget()


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_superuser("operator@example.org", "x" * 12)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def failed_job(side: Side, kind: str, payload: dict[str, Any], **fields: Any) -> Job:
    with tenant_scope(side.tenant.pk):
        made: Job = Job.objects.create(
            tenant=side.tenant,
            kind=kind,
            payload=payload,
            status=JobStatus.FAILED,
            error_code="broken",
            error_message="The converter gave up.",
            finished_at=timezone.now(),
            **fields,
        )
    return made


# --- who may -----------------------------------------------------------------------------------------


def test_nobody_but_a_superuser_reads_the_page_or_retries_a_job(operator: User) -> None:
    side = Side()
    job = failed_job(side, "collections.versions_prune", {"collection": 1})
    anonymous = Client()
    assert anonymous.get(PAGE)["Location"].startswith("/accounts/login/")
    assert anonymous.post(RETRY, {"job": job.pk})["Location"].startswith("/accounts/login/")
    staff = User.objects.create_user("staff@example.org", "x" * 12, is_staff=True)
    for user in (side.user("owner"), staff):
        assert client_of(user).get(PAGE).status_code == 404
        assert client_of(user).post(RETRY, {"job": job.pk}).status_code == 404
    gone = User.objects.create_superuser("gone@example.org", "x" * 12, is_active=False)
    assert client_of(gone).get(PAGE).status_code != 200
    with platform_scope():
        assert Job.objects.get(pk=job.pk).retried_at is None
    assert client_of(operator).get(PAGE).status_code == 200
    assert client_of(operator).get(RETRY).status_code == 405
    for nonsense in ("", "x", "1" * 30, "-1"):
        assert client_of(operator).post(RETRY, {"job": nonsense}).status_code == 404


def test_an_operator_without_a_workspace_lands_on_the_page(operator: User) -> None:
    assert client_of(operator).get("/")["Location"] == PAGE
    side = Side()
    assert client_of(side.user("owner")).get("/")["Location"] != PAGE


# --- what it tells -----------------------------------------------------------------------------------


def test_an_empty_installation_says_what_is_missing_and_what_to_do(operator: User) -> None:
    text = client_of(operator).get(PAGE).content.decode()
    assert "No worker has run in the last day" in text
    assert "No job has failed in the last 7 days." in text
    assert "GROUNDWORK_BACKUP_URL" in text
    assert "No worker is alive" in text, "the alert"
    assert "Needs" in text


@pytest.mark.parametrize(("url", "state"), [("", "warn"), ("file:///b", "ok")])
def test_all_is_well_only_where_backups_are_made(operator: User, settings: Any, url: str, state: str) -> None:
    settings.BACKUP_URL = url
    assert replace(installation_read(), checks=[], alerts=[]).state == state


def test_it_shows_workers_failures_workspaces_and_backups(operator: User, settings: Any) -> None:
    settings.BACKUP_URL = "file:///b"
    now = timezone.now()
    Worker.objects.create(name="box-1", seen_at=now, processes=3, version="9.9.1")
    Worker.objects.create(name="box-2", seen_at=now - timedelta(hours=2), version="9.9.0")
    side, other = Side(), Side()
    failed_job(side, "collections.versions_prune", {"collection": 1})
    failed_job(other, "collections.versions_prune", {"collection": 1})
    failed_job(side, "a.kind_of_a_removed_app", {})
    for kind, is_ok, detail in (("create", True, ""), ("verify", False, "chunks differ")):
        BackupResult.objects.create(
            kind=kind, url="file:///b", name="b1", is_ok=is_ok, began_at=now, ended_at=now, detail=detail
        )
    found = installation_read()
    assert [(f.job.kind, f.count, len(f.workspaces), f.is_retryable) for f in found.failed] == [
        ("a.kind_of_a_removed_app", 1, 1, False),
        ("collections.versions_prune", 2, 2, True),
    ]
    assert {w.tenant.pk for w in found.workspaces} >= {side.tenant.pk, other.tenant.pk}
    text = client_of(operator).get(PAGE).content.decode()
    for words in (
        "box-1",
        "9.9.1",
        "alive",
        "gone",
        "last seen 2",
        "The converter gave up.",
        "chunks differ",
    ):
        assert words in text, words
    assert side.tenant.name in text
    assert "Start it again in its workspace" in text
    part = client_of(operator).get(PAGE, headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div\n  id="installation"')
    assert "<html" not in part


def test_old_failures_and_retried_ones_are_no_news(operator: User) -> None:
    side = Side()
    old = failed_job(side, "collections.versions_prune", {"collection": 1})
    with platform_scope():
        Job.objects.filter(pk=old.pk).update(finished_at=timezone.now() - timedelta(days=8))
    assert installation_read().failed == []


# --- retry -------------------------------------------------------------------------------------------


def test_a_retry_makes_a_new_job_once_and_is_in_the_workspaces_audit_trail(operator: User) -> None:
    side = Side()
    job = failed_job(side, "collections.versions_prune", {"collection": 1})
    client = client_of(operator)
    for _ in range(2):
        assert client.post(RETRY, {"job": job.pk})["Location"] == PAGE
    with platform_scope():
        again = Job.objects.filter(kind=job.kind, status=JobStatus.QUEUED)
        assert [(one.tenant_id, one.payload) for one in again] == [(side.tenant.pk, {"collection": 1})]
        event = AuditEvent.objects.get(action="job.retry")
    assert (event.tenant_id, event.user_id, event.actor_name) == (
        side.tenant.pk,
        operator.pk,
        "operator@example.org",
    )
    assert installation_read().failed == []


def test_a_retry_of_a_document_brings_the_document_back(operator: User) -> None:
    side = Side()
    document = side.row("collections.document", "owner")
    with tenant_scope(side.tenant.pk):
        Document.objects.filter(pk=document.pk).update(status=DocumentStatus.FAILED)
    job = failed_job(side, "collections.document_ingest", {"document": document.pk})
    client_of(operator).post(RETRY, {"job": job.pk})
    with tenant_scope(side.tenant.pk):
        document.refresh_from_db()
        assert document.status == DocumentStatus.QUEUED
        assert Job.objects.filter(kind=job.kind, status=JobStatus.QUEUED).count() == 1


def test_kinds_whose_row_has_ended_are_refused_rather_than_run_for_nothing(db: None) -> None:
    side = Side()
    turn = failed_job(side, "conversations.turn_run", {"turn": 1})
    assert not registry.get("conversations.turn_run").is_retryable
    with pytest.raises(Conflict) as refused:
        job_retry(tenant=side.tenant, actor=system_actor(side.tenant.pk), job=turn)
    assert refused.value.code == "job_not_retryable"
    gone = failed_job(side, "collections.document_ingest", {"document": 2**40})
    client = client_of(User.objects.create_superuser("o@example.org", "x" * 12))
    answer = client.post(RETRY, {"job": gone.pk}, follow=True)
    assert "alert error" in answer.content.decode()
    with platform_scope():
        assert Job.objects.get(pk=gone.pk).retried_at is None, "nothing was retried"


# --- alerts ------------------------------------------------------------------------------------------

_EXPRESSION = re.compile(
    r"(?P<abs>abs\()?(?:(?:max|min)(?: by \(\w+\))? ?\()?groundwork_(?P<figure>\w+)\)?"
    r"(?: / (?:max\()?groundwork_(?P<of>\w+)\)?)? (?P<sign>[<>]|==) (?P<threshold>[\d.]+)"
)


def test_rules_of_the_page_are_those_of_prometheus() -> None:
    rules = alerts()
    for rule in RULES:
        told = rules[rule.name]
        found = _EXPRESSION.fullmatch(told["expr"])
        assert found, told["expr"]
        assert (found["figure"], found["of"] or "") == (rule.figure, rule.part_of), rule.name
        assert found["sign"] == rule.sign.removeprefix("abs"), rule.name
        assert bool(found["abs"]) == rule.sign.startswith("abs")
        assert float(found["threshold"]) == rule.threshold, rule.name
        assert told["labels"]["severity"] == rule.severity, rule.name
    # What is left out needs figures over time, or Prometheus' own.
    left = {name: rule["expr"] for name, rule in rules.items() if name not in {r.name for r in RULES}}
    assert all("rate(" in e or "increase(" in e or e.startswith("up{") for e in left.values()), left


def test_every_rule_fires_past_its_threshold_and_not_before() -> None:
    for rule in RULES:
        whole = [Figure(rule.part_of, "", 100.0)] if rule.part_of else []
        scale = 100.0 if rule.part_of else 1.0
        beyond = {"<": -0.01, ">": 0.01, "abs>": 0.01, "==": 0}[rule.sign]
        fine = {"<": 0.01, ">": 0, "abs>": 0, "==": 1}[rule.sign]
        fires = alerts_now([Figure(rule.figure, "", (rule.threshold + beyond) * scale), *whole])
        assert [a.rule.name for a in fires] == [rule.name]
        assert alerts_now([Figure(rule.figure, "", (rule.threshold + fine) * scale), *whole]) == []
    assert alerts_now([]) == [], "what is unknown is no alert"
    by_lane = [Figure("queue_oldest_seconds", "", 400.0, {"lane": "loop"})]
    assert [a.where for a in alerts_now(by_lane)] == ["lane loop"]


def test_times_are_said_as_people_say_them() -> None:
    assert [lasted(s) for s in (0, 119, 120, 7200, 172_800)] == ["0 s", "119 s", "2 min", "2 h", "2 days"]


# --- status ------------------------------------------------------------------------------------------


def test_the_status_page_is_private_until_it_is_opened(transactional_db: None, settings: Any) -> None:
    operator = User.objects.create_superuser("operator@example.org", "x" * 12)
    assert Client().get("/status").status_code == 404
    assert client_of(make_owner()).get("/status").status_code == 404
    assert client_of(operator).get("/status").status_code == 503, "no worker is alive"
    settings.STATUS_PAGE = "public"
    Worker.objects.create(name="secret-host-1", seen_at=timezone.now())
    readings.forget()
    answer = Client().get("/status")
    text = answer.content.decode()
    assert answer.status_code == 200
    assert "Everything works" in text
    assert "secret-host" not in text
    assert not re.search(r"PostgreSQL|pgvector|\d+\.\d+\.\d+|@", text.partition("<main")[2])


def make_owner() -> User:
    make_tenant()
    return Side().user("owner")


def test_status_tells_the_parts_apart() -> None:
    def parts(**figures: float) -> list[str]:
        lanes = [
            Figure("queue_oldest_seconds", "", figures.pop(n, 0.0), {"lane": n}) for n in ("loop", "cpu")
        ]
        return [p.state for p in parts_now([*lanes, *(Figure(n, "", v) for n, v in figures.items())])]

    assert parts() == ["down", "down", "down"]
    assert parts(database_up=1) == ["ok", "down", "down"]
    assert parts(database_up=1, workers=1) == ["ok", "ok", "ok"]
    assert parts(database_up=1, workers=1, loop=61) == ["ok", "slow", "ok"]
    assert parts(database_up=1, workers=1, cpu=601) == ["ok", "ok", "slow"]
    assert overall(parts_now([])) == "down"


def test_a_public_status_page_is_there_while_the_database_is_away(
    db: None, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STATUS_PAGE = "public"

    def away(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("no server")

    monkeypatch.setattr("django.db.backends.base.base.BaseDatabaseWrapper.connect", away)
    answer = Client().get("/status")
    assert answer.status_code == 503
    assert "Something doesn't work" in answer.content.decode()


# --- the admin's index ---------------------------------------------------------------------------------


def test_the_admins_index_is_grouped_in_the_words_of_the_portal(operator: User) -> None:
    page: Any = client_of(operator).get("/admin/")
    groups = page.context["app_list"]
    assert [group["name"] for group in groups] == [name for _, name, _ in GROUPS], "and no app is left over"
    shown = [str(model["name"]) for group in groups for model in group["models"]]
    listed = {model["admin_url"] for group in groups for model in group["models"]}
    assert len(shown) == len(listed), "none twice"
    assert not [name for name in shown if re.search(r"ss\b(?<!ress)|tenant|chunk", name, re.I)]
    text = page.content.decode()
    assert "Failure groups" in text
    assert "groupss" not in text
    assert "Nothing right now." in text


def test_the_admins_index_counts_what_needs_a_person_of_ones_own_workspaces(operator: User) -> None:
    mine, theirs = Side(), Side()
    for side, count in ((mine, 1), (theirs, 2)):
        for _ in range(count):
            failed_job(side, "a.kind", {})
    assert "<b>3</b> failed jobs of the last week" in client_of(operator).get("/admin/").content.decode()
    own = client_of(mine.user("owner")).get("/admin/").content.decode()
    assert "<b>1</b> failed job of the last week" in own
    assert "The whole installation" not in own
