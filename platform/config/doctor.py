"""What ``manage.py doctor`` looks at: every part the platform needs, each with what to do where it is not well."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.collections.embedders.folder import model_verify
from apps.collections.embedders.minilm import is_prepared
from apps.collections.embedders.registry import BUILT_IN, parse_embedder
from apps.collections.index.embedding import default_setting, installed_model
from backups.models import BackupResult
from backups.results import is_verified, last_result
from backups.schedule import last_backup
from basics.errors import DomainError
from blobs.errors import StoreAway
from blobs.stores import store
from jobs.health import check_queue, check_workers
from notices.selectors import is_mail_set_up
from tenancy.database import replica
from tenancy.health import REPLICA_FIX, Check, guarded
from tenancy.public_address import public_address
from tenancy.row_security import tenant_models, walls_problem
from toolloop.providers.registry import configured_models
from web.health import readiness

LOW_DISK_GB = 1.0
OLD_BACKUP = timedelta(days=2)
MIN_POSTGRES = 16
MIN_VECTOR = (0, 7)  # halfvec and sparsevec


def examine() -> list[Check]:
    """Return every finding. Checks that need the database are left out when it is away."""
    found = [check for check in readiness() if check.name != "replica"]  # of a web process; see check_replica
    if found[0].ok:
        needs_database: tuple[tuple[str, Callable[[], Check], str], ...] = (
            ("postgres", check_postgres, "Use PostgreSQL 16 or later."),
            ("vector", check_vector, "As a superuser: CREATE EXTENSION vector;"),
            ("walls", check_row_security, "Run: python manage.py migrate"),
            *([("replica", check_replica, REPLICA_FIX)] if replica.is_set() else []),
            ("queue", check_queue, "See the queue's settings: GROUNDWORK_BROKER."),
            ("worker", check_workers, "Start a worker: python manage.py worker"),
            ("backup", check_backup, "Run: python manage.py backup create"),
        )
        found[1:1] = [guarded(name, check, fix) for name, check, fix in needs_database]
    return [
        *found,
        guarded("embedder", check_embedder, "Correct GROUNDWORK_EMBEDDER."),
        guarded("models", check_models, "Correct the providers' variables; see .env.example."),
        guarded("files", check_files, "See GROUNDWORK_FILES_URL."),
        guarded("mail links", check_mail_links, "Correct GROUNDWORK_TRUSTED_ORIGINS."),
        guarded("disk", check_disk, "Make the data directory."),
        guarded("data directory", check_data_dir, "Run: python manage.py prepare"),
    ]


def check_postgres() -> Check:
    """The server is new enough (GRANT ... WITH SET)."""
    major = connection.pg_version // 10000  # type: ignore[attr-defined]
    fix = "" if major >= MIN_POSTGRES else f"Use PostgreSQL {MIN_POSTGRES} or later."
    return Check("postgres", major >= MIN_POSTGRES, f"version {major}", fix)


def check_vector() -> Check:
    """pgvector is there, with half-precision and sparse vectors."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return Check("vector", False, "not installed", "As a superuser: CREATE EXTENSION vector;")
    version = tuple(int(part) for part in str(row[0]).split(".")[:2])
    is_new = version >= MIN_VECTOR
    return Check("vector", is_new, f"pgvector {row[0]}", "" if is_new else "Install pgvector 0.7 or later.")


def check_row_security() -> Check:
    """Every tenant table has row-level security, forced, with both policies, and the roles can be taken."""
    if problem := walls_problem():
        return Check("walls", False, problem, "Run: python manage.py migrate")
    return Check("walls", True, f"{len(tenant_models())} tables")


def check_replica() -> Check:
    """The replica answers and is one of this database; how far it is behind."""
    if problem := replica.replica_problem():
        return Check("replica", False, problem, REPLICA_FIX)
    behind = replica.bytes_behind()
    return Check("replica", True, "in step" if not behind else f"{behind} bytes behind")


def check_embedder() -> Check:
    """The model of new collections can be used: built for this machine, or with a key."""
    setting = default_setting()
    name = parse_embedder(setting)
    if name.provider == "local" and name.model not in BUILT_IN:
        model = installed_model(setting)
        if model is None:
            return Check(
                "embedder", False, f"{setting} is not installed", "Run: python manage.py embedder_add FOLDER"
            )
        try:
            model_verify(model)
        except DomainError as error:
            return Check("embedder", False, error.message, "Copy the folder to this machine.")
        return Check("embedder", True, setting)
    if name.provider == "local":
        is_there = is_prepared(settings.DATA_DIR, "fp32" if name.model.endswith(":fp32") else "int8")
        fix = "" if is_there else "Run: python manage.py embedder_prepare"
        return Check("embedder", is_there, setting if is_there else f"{setting} is not prepared", fix)
    variables = {"openai": ("OPENAI_API_KEY",), "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY")}[name.provider]
    has_key = any(os.environ.get(v) for v in variables)
    fix = "" if has_key else f"Set {' or '.join(variables)}."
    return Check("embedder", has_key, setting if has_key else f"{setting} has no key", fix)


def check_models() -> Check:
    """Which models this installation's own environment offers; none but the extractive one is fine too."""
    names = [info.id for info in configured_models(os.environ) if info.is_language_model]
    return Check("models", True, ", ".join(names) if names else "extractive only (no language model)")


def check_backup() -> Check:
    """Where backups are scheduled, the last one ended well and isn't old; what is known of it is told in any case."""
    good, last = last_backup(), last_result(BackupResult.Kind.CREATE)
    told = f"{good.name}, {good.row_count:,} rows" if good else "none yet"
    if good is not None and is_verified(good.name):
        told += ", verified"
    if last is not None and not last.is_ok:
        return Check(
            "backup", False, f"the last attempt failed: {last.detail}", "Run: python manage.py backup create"
        )
    if not settings.BACKUP_URL:
        return Check("backup", True, f"{told}; not scheduled, GROUNDWORK_BACKUP_URL isn't set")
    if good is not None and good.began_at < timezone.now() - OLD_BACKUP:
        fix = "Start a worker, which writes backups, or run: python manage.py backup create"
        return Check("backup", False, f"the last one is from {good.began_at:%Y-%m-%d %H:%M} UTC", fix)
    proof = last_result(BackupResult.Kind.VERIFY)
    if proof is not None and not proof.is_ok and settings.BACKUP_VERIFY_DAYS:
        of = proof.name or "none finished"
        fix = "Run: python manage.py backup create, then: python manage.py backup verify"
        return Check("backup", False, f"the last verification failed ({of}): {proof.detail}", fix)
    return Check("backup", True, told)


def check_disk() -> Check:
    """There is room for uploads and the database."""
    free = shutil.disk_usage(settings.DATA_DIR).free / 1e9
    fix = "" if free >= LOW_DISK_GB else f"Free some space: under {LOW_DISK_GB:g} GB uploads start to fail."
    return Check("disk", free >= LOW_DISK_GB, f"{free:.1f} GB free", fix)


def check_files() -> Check:
    """The store of files answers."""
    name = settings.FILES_URL.partition("?")[0] or "the data directory"
    try:
        next(iter(store().below("t0/")), None)
    except (StoreAway, ValueError) as error:
        detail = f"{name}: {getattr(error, 'reason', error)}"
        return Check("files", False, detail, "See GROUNDWORK_FILES_URL and the credentials of the store.")
    return Check("files", True, name)


def check_mail_links() -> Check:
    """Mails can link to this server: a setting names it in full, so that no request decides where a link leads."""
    address = public_address()
    if not is_mail_set_up():
        return Check("mail links", True, "mail is printed to the log")
    if address:
        return Check("mail links", True, address)
    fix = "Set GROUNDWORK_TRUSTED_ORIGINS to the address that people open, such as https://kb.example.org."
    return Check(
        "mail links", False, "no setting names this server's address, so its mails can't link to it", fix
    )


def check_data_dir() -> Check:
    """It can be written, and no one else can read the secrets in it."""
    folder = settings.DATA_DIR
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check("data directory", False, f"{folder} cannot be written", "Give it to this user.")
    secrets = [folder / name for name in ("secret_key", "demo_password")]
    open_ones = [p.name for p in secrets if p.exists() and p.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]
    if open_ones:
        fix = f"Run: chmod 600 {' '.join(str(folder / n) for n in open_ones)}"
        return Check("data directory", False, f"others can read {', '.join(open_ones)}", fix)
    return Check("data directory", True, str(folder))
