"""The operator's commands: what they print, what they leave behind, how they end."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from apps.collections.collection.samples import FOLDER
from apps.collections.models import Collection, Document
from config import demo, doctor, env
from jobs.models import Job, Worker
from tenancy.database.base import as_login_role
from tenancy.models import ApiKey, Membership, Tenant, User
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import api_key_authenticate
from tests.cast import Cast

ROOT = Path(__file__).resolve().parents[2]


def output(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_unknown_setting_is_named_in_one_line():
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "GROUNDWORK_PORTT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Settings: GROUNDWORK_PORTT is not a setting of Groundwork.")
    assert done.stderr.count("\n") == 1


def test_command_whose_reader_has_enough_ends_without_a_word():
    done = subprocess.Popen(
        [sys.executable, "manage.py", "help"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.stdout is not None
    done.stdout.close()
    _, told = done.communicate(timeout=60)
    assert (done.returncode, told) == (128 + signal.SIGPIPE, "")


# --- keys and workspaces -----------------------------------------------------------------------


def test_printed_key_works_and_acts_for_the_owner(cast: Cast):
    found = json.loads(
        output(
            "api_key_create",
            "--tenant",
            cast.tenant.slug,
            "--scopes",
            "search.run,collection.*",
            "--json",
            "--expires-days",
            "2",
        )
    )
    authenticated = api_key_authenticate(key=found["key"])
    assert authenticated is not None
    assert authenticated[1].user_id == cast.user("owner").pk
    assert found["expires_at"] > timezone.now().isoformat()
    plain = output("api_key_create", "--tenant", cast.tenant.slug, "--scopes", "search.run")
    assert api_key_authenticate(key=plain.strip()) is not None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--tenant", "nobody", "--scopes", "search.run"], "no workspace"),
        (["--scopes", "everything"], "unknown scope"),
        (["--scopes", ""], "at least one scope"),
        (["--scopes", "search.run", "--expires-days", "-1"], "in the past"),
        (["--scopes", "search.run", "--user", "x@example.org"], "no member"),
    ],
)
def test_key_is_refused_in_words(cast: Cast, arguments: list[str], reason: str):
    if "--tenant" not in arguments:
        arguments = ["--tenant", cast.tenant.slug, *arguments]
    with pytest.raises(CommandError, match=reason):
        output("api_key_create", *arguments)
    with tenant_scope(cast.tenant.pk):
        assert not ApiKey.objects.exists()


def test_key_for_a_viewer_is_refused(cast: Cast):
    with pytest.raises(CommandError):
        output(
            "api_key_create",
            "--tenant",
            cast.tenant.slug,
            "--scopes",
            "search.run",
            "--user",
            cast.user("viewer").email,
        )


@pytest.mark.django_db
def test_workspace_is_made_with_its_owner():
    found = json.loads(
        output("tenant_create", "--name", "New", "--slug", "new", "--owner", "Boss@example.org", "--json")
    )
    boss = User.objects.get(email="boss@example.org")
    assert boss.check_password(found["password"])
    with platform_scope():
        assert Membership.objects.get(user=boss).role == "owner"
    again = json.loads(
        output("tenant_create", "--name", "2", "--slug", "two", "--owner", "boss@example.org", "--json")
    )
    assert again["password"] is None


@pytest.mark.django_db
def test_refused_workspace_leaves_no_account():
    Tenant.objects.create(slug="taken", name="x")
    with pytest.raises(CommandError, match="taken"):
        output("tenant_create", "--name", "x", "--slug", "taken", "--owner", "new@example.org")
    assert not User.objects.filter(email="new@example.org").exists()


# --- demo ----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_demo_is_seeded_once_and_its_tenants_are_apart(settings, tmp_path: Path):
    settings.DATA_DIR = tmp_path
    first = output("seed_demo")
    assert demo.demo_password(tmp_path) in first
    again = output("seed_demo")
    assert "being ingested" not in again
    assert demo.demo_password(tmp_path) in again
    kept = tmp_path / "demo_password"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for workspace in demo.WORKSPACES:
        tenant = Tenant.objects.get(slug=workspace.slug)
        with tenant_scope(tenant.pk):
            assert Collection.objects.get().name == workspace.sample.name
            assert sorted(d.name for d in Document.objects.all()) == sorted(workspace.sample.files)
            ingested = Job.objects.filter(kind="collections.document_ingest")
            assert ingested.count() == len(workspace.sample.files)
    assert User.objects.get(email=demo.EMAIL).check_password(demo.demo_password(tmp_path))


@pytest.mark.django_db
def test_demo_does_not_bring_back_what_people_deleted(settings, tmp_path: Path):
    settings.DATA_DIR = tmp_path
    output("seed_demo")
    with platform_scope():
        Document.objects.all().delete()
    output("seed_demo")
    with platform_scope():
        assert not Document.objects.exists()


def test_demo_documents_are_small_and_their_sources_named():
    sources = (FOLDER / "SOURCES.md").read_text()
    files = [p for p in FOLDER.iterdir() if p.name != "SOURCES.md"]
    assert {p.name for p in files} == {name for w in demo.WORKSPACES for name in w.sample.files}
    assert all(f"`{p.name}`" in sources for p in files)
    assert sum(p.stat().st_size for p in files) < 1_000_000


# --- doctor --------------------------------------------------------------------------------------


def examine() -> dict[str, Any]:
    return {check.name: check for check in doctor.examine()}


@pytest.mark.django_db
def test_doctor_finds_the_parts_well(settings, tmp_path: Path):
    settings.DATA_DIR = tmp_path
    settings.CSRF_TRUSTED_ORIGINS = ["https://kb.example.org"]
    Worker.objects.create(name="w")
    found = examine()
    assert set(found) == {
        *("database", "postgres", "vector", "walls", "migrations", "queue", "worker"),
        *(
            "embedder",
            "listen",
            "models",
            "disk",
            "data directory",
            "storage",
            "files",
            "backup",
            "mail links",
        ),
    }
    bad = {name for name, check in found.items() if not check.ok}
    assert bad <= {"embedder"}, "only the model may not be prepared in a fresh folder"
    assert "embedder_prepare" in found["embedder"].fix


@pytest.mark.django_db
def test_doctor_counts_the_workers_that_are_alive():
    Worker.objects.create(name="a", processes=3)
    Worker.objects.create(name="b", processes=2)
    Worker.objects.create(name="killed", processes=9, seen_at=timezone.now() - timedelta(hours=1))
    found = examine()["worker"]
    assert found.ok
    assert "2 alive with 5 processes" in found.detail


@pytest.mark.django_db
def test_doctor_finds_a_fallen_wall():
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE collections_chunk NO FORCE ROW LEVEL SECURITY")
        cursor.execute("DROP POLICY tenant_isolation ON runs_run")
    found = examine()["walls"]
    assert not found.ok
    assert "collections_chunk" in found.detail
    assert "runs_run" in found.detail


@pytest.mark.django_db
def test_doctor_finds_secrets_that_others_can_read(settings, tmp_path: Path):
    settings.DATA_DIR = tmp_path
    (tmp_path / "secret_key").write_text("x")
    os.chmod(tmp_path / "secret_key", 0o644)
    found = examine()["data directory"]
    assert not found.ok
    assert "chmod 600" in found.fix


@pytest.mark.django_db
def test_doctor_ends_with_one_and_says_what_to_do():
    Worker.objects.create(name="w", seen_at=timezone.now() - timedelta(hours=1))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", stdout=out)
    assert ended.value.code == 1
    report = json.loads(out.getvalue())
    assert report["ok"] is False
    (worker,) = [c for c in report["checks"] if c["name"] == "worker"]
    assert worker["fix"]
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)


def test_committed_env_example_is_current():
    assert (ROOT / ".env.example").read_text() == env.example(), "run: manage.py env_example > .env.example"


@pytest.mark.django_db
def test_database_of_a_later_version_is_refused_in_one_line():
    from django.core.management import CommandError
    from django.db.migrations.recorder import MigrationRecorder

    from tenancy.database.base import as_login_role

    with as_login_role():
        MigrationRecorder.Migration.objects.create(app="tenancy", name="9999_from_the_future")
    with pytest.raises(CommandError) as refused:
        output("prepare", "--no-demo")
    assert "9999_from_the_future" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_command_without_its_database_says_where_it_looked_in_one_line(tmp_path: Path) -> None:
    """`up --data-dir` runs elsewhere than the commands look: the first one that a new operator types says so."""
    done = subprocess.run(
        [sys.executable, "manage.py", "createsuperuser", "--noinput", "--email", "op@example.org"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
        | {"GROUNDWORK_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings.dev"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"The database in {tmp_path} isn't running. Start Groundwork")
    assert done.stderr.count("\n") == 1


def test_backups_go_to_a_folder_that_is_written_as_the_command_takes_it() -> None:
    named = {"GROUNDWORK_BACKUP_URL": "/srv/all backups"}
    assert env.get("GROUNDWORK_BACKUP_URL", named) == "file:///srv/all%20backups"
    with pytest.raises(env.SettingsError, match="expected s3://"):
        env.get("GROUNDWORK_BACKUP_URL", {"GROUNDWORK_BACKUP_URL": "backups"})
