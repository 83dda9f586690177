"""What the operator is told before an upgrade: true figures of a real database, and 1 when something is in the way."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config import upgrade
from config.embedded import state
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.database.history import LAST
from tenancy.upgrades.effects import Effect, Lock, Mark, Work
from tests.factories import make_tenant

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "webhooks_webhook"
PENDING = ["webhooks.0002_previous_secret", "webhooks.0003_redundant_indexes"]


def told(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("upgrade_check", *arguments, stdout=out, no_color=True)
    except SystemExit as ended:
        return int(str(ended.code)), out.getvalue()
    return 0, out.getvalue()


def told_json() -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    code, text = told("--json")
    report = json.loads(text)
    return code, report, {c["name"]: c for c in report["checks"]}


@pytest.fixture
def behind() -> Iterator[None]:
    """The database lacks the migrations of the webhooks after the first, and has counted its rows."""
    call_command("migrate", "webhooks", "0001", verbosity=0)
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} (tenant_id, url, description, events, secret_encrypted, is_enabled, failures, "
            "updated_at) SELECT (SELECT min(id) FROM tenancy_tenant), 'https://example.org/' || n, '', '[]', 'x', "
            "true, 0, now() FROM generate_series(1, 500) n"
        )
        cursor.execute(f"ANALYZE {TABLE}")
    try:
        yield
    finally:
        call_command("migrate", verbosity=0)


@pytest.fixture
def tenant() -> None:
    make_tenant()


@pytest.fixture
def applied() -> Iterator[MigrationRecorder]:
    """The list of applied migrations, given back as it was."""
    recorder = MigrationRecorder(connection)
    with as_login_role():
        before = list(recorder.migration_qs.values_list("app", "name", "applied"))
        try:
            yield recorder
        finally:
            recorder.migration_qs.all().delete()
            recorder.migration_qs.bulk_create(
                recorder.Migration(app=a, name=n, applied=at) for a, n, at in before
            )


def test_nothing_to_do_is_said() -> None:
    code, text = told()
    assert code == 0
    assert "No migration to run" in text
    assert "FAIL" not in text
    assert "none known" in text


def test_it_names_each_step_with_its_lock_and_the_size_of_its_table(tenant: None, behind: None) -> None:
    code, report, checks = told_json()
    assert code == 0
    assert report["ok"] is True
    assert [m["name"] for m in report["migrations"]] == PENDING
    steps = report["migrations"][0]["steps"]
    assert [s["step"] for s in steps] == [
        "AddField webhook.previous_secret_encrypted",
        "AddField webhook.rotated_at",
    ]
    for step in steps:
        assert (step["table"], step["lock"], step["work"]) == (TABLE, "ACCESS EXCLUSIVE", "catalog")
        assert (step["rows"], step["seconds"], step["disk_bytes"]) == (500, 0.0, 0.0)
        assert step["all_bytes"] > step["table_bytes"] > 8192
    (dropping,) = report["migrations"][1]["steps"]
    assert dropping["step"] == "DropKeyIndexesConcurrently"
    assert (dropping["lock"], dropping["work"]) == ("SHARE UPDATE EXCLUSIVE", "catalog")
    assert checks["rolling"]["detail"].startswith("servers of the version before can go on working")
    code, text = told()
    assert code == 0
    assert "2 migrations to run" in text
    assert f"AddField webhook.rotated_at, table {TABLE} (about 500 rows, 0." in text
    assert "lock ACCESS EXCLUSIVE (reads and writes wait), under a second" in text
    # It changed nothing.
    assert told_json()[1]["migrations"] == report["migrations"]


def test_a_schema_newer_than_the_code_stands_in_the_way(applied: MigrationRecorder) -> None:
    applied.record_applied("webhooks", "0999_of_tomorrow")
    code, report, checks = told_json()
    assert code == 1
    assert report["ok"] is False
    assert "newer than this code: webhooks.0999_of_tomorrow" in checks["history"]["detail"]


def test_a_database_from_before_the_reset(applied: MigrationRecorder) -> None:
    applied.migration_qs.filter(app__in=LAST).delete()
    applied.record_applied("tenancy", "0002_model_entries_and_endpoints")
    for app, name in LAST.items():
        applied.record_applied(app, name)
    _, report, checks = told_json()
    assert checks["history"]["ok"]
    assert "from before the migrations were reset" in checks["history"]["detail"]
    on_disk = MigrationLoader(None).disk_migrations
    after_the_first = {f"{app}.{name}" for app, name in on_disk if app in LAST and name != "0001_initial"}
    assert "jobs.0002_waits_since" in after_the_first
    assert {m["name"] for m in report["migrations"]} == after_the_first | set(PENDING)
    applied.migration_qs.filter(app="runs", name=LAST["runs"]).delete()
    code, report, checks = told_json()
    assert code == 1
    assert "did not reach runs.0012_reads_of_files" in checks["history"]["detail"]


def test_a_history_with_a_gap_stands_in_the_way(applied: MigrationRecorder) -> None:
    applied.migration_qs.filter(app="webhooks", name="0001_initial").delete()
    code, _, checks = told_json()
    assert code == 1
    assert "webhooks.0002" in checks["history"]["error"]


def test_a_forgotten_transaction_stands_in_the_way(
    tenant: None, behind: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with direct_connection() as session:
        session.execute("BEGIN")
        session.execute(f"SELECT count(*) FROM {TABLE}")
        assert told()[0] == 0  # one that has just begun is everyday work
        monkeypatch.setattr(upgrade, "OLD_S", 0.0)
        code, _, checks = told_json()
        pid = session.info.backend_pid
    assert code == 1
    assert f"{TABLE} is held by session {pid} of " in checks["in use"]["detail"]
    assert checks["in use"]["fix"] == f"End it: SELECT pg_terminate_backend({pid});"


def test_a_database_that_is_away_is_one_finding(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise OSError("no route")

    monkeypatch.setattr(upgrade, "check_database", away)
    code, report, checks = told_json()
    assert code == 1
    assert set(checks) == {"database"}
    assert checks["database"]["error"] == "no route"
    assert report["migrations"] is None
    assert "No migration to run" not in told()[1]


def plan(*effects: Effect, size: int = 10**9) -> list[upgrade.Planned]:
    return [upgrade.Planned("shelf.0002_x", [upgrade.Step(e, 1000, size, 2 * size) for e in effects])]


BUILD = Effect("AddIndexConcurrently book.x", "shelf_book", Lock.SHARE_UPDATE_EXCLUSIVE, Work.INDEX)
DROP = Effect(
    "RemoveField book.x",
    "shelf_book",
    Lock.ACCESS_EXCLUSIVE,
    problem="servers of the version before name this column",
    mark=Mark.CONTRACT,
)
REWRITE = Effect(
    "AlterField book.x", "shelf_book", Lock.ACCESS_EXCLUSIVE, Work.REWRITE, problem="written again"
)
DATA = Effect("RunPython move", "", Lock.ROWS, Work.DATA, problem="row locks")


def test_times_and_disk_grow_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = plan(BUILD, REWRITE, DATA, DROP)[0].steps
    assert [s.seconds for s in steps] == [50.0, 100.0, None, 0.0]
    assert [s.disk_bytes for s in steps] == [2e9, 4e9, 0.0, 0.0]
    monkeypatch.setattr(upgrade, "_planned", lambda: plan(BUILD, REWRITE, DATA))
    _, text = told()
    assert "lock SHARE UPDATE EXCLUSIVE (reads and writes continue), about 50 s" in text
    assert "RunPython move: lock ROW EXCLUSIVE" in text
    assert "up to 7.0 GB" in text


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        ([DROP], "servers two releases old break"),
        ([DROP, REWRITE], "Stop web and workers first"),
    ],
)
def test_what_does_not_run_while_people_work_is_said(
    effects: list[Effect], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "_planned", lambda: plan(*effects))
    code, _, checks = told_json()
    assert code == 0
    assert words in checks["rolling"]["fix"]


def test_disk_of_the_embedded_database_is_looked_at(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upgrade.database_folder() is None  # the tests' own is given as DATABASE_URL
    _, _, checks = told_json()
    assert checks["database disk"]["detail"].startswith("can't be told from here")
    settings.DATA_DIR = tmp_path
    (tmp_path / "run").mkdir()
    (tmp_path / "postgres").mkdir()
    state.save(tmp_path, state.State(str(tmp_path / "postgres"), 20000, "a", "b"))
    monkeypatch.delitem(os.environ, "DATABASE_URL")
    assert upgrade.database_folder() == tmp_path / "postgres"
    usage = shutil.disk_usage(tmp_path)
    for free, is_ok in ((usage.free + 10**10, True), (10**8, False)):
        found = type(usage)(usage.total, usage.used, free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, found=found: found)
        code, _, checks = told_json()
        assert checks["database disk"]["ok"] is is_ok
        assert checks["data folder"]["ok"] is is_ok
        assert code == (0 if is_ok else 1)
        assert "backup create" in checks["backup"]["fix"]


def test_a_role_that_owns_nothing_stands_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:  # the application's own role
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("groundwork_rw",)
    found = upgrade._check_owner()
    assert not found.ok
    assert "this role owns neither" in found.detail
