"""Every documented variable: known, accepted with a documented value, of effect, and loud when it is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from config import env, variables

ROOT = Path(__file__).resolve().parents[2]
DEV, PROD = "config.settings.dev", "config.settings.prod"
KEY = "sRWhAZlVRqaXM3RUxs8WpV5zNmnKXjJLfWXlU5lJx5E="
SIGNING = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

# name: (documented value, what it leads to, in which settings, other variables it needs)
EFFECTS: dict[str, tuple[Any, ...]] = {
    "DATABASE_URL": (
        "postgresql://ann:pw@db.example.org:5433/name",
        "[settings.DATABASES['default'][k] for k in ('HOST', 'PORT', 'USER', 'NAME')]",
        ["db.example.org", "5433", "ann", "name"],
    ),
    "GROUNDWORK_DATA_DIR": (
        "/tmp/gw-elsewhere",
        "[str(settings.DATA_DIR), str(settings.MEDIA_ROOT)]",
        ["/tmp/gw-elsewhere", "/tmp/gw-elsewhere/files"],
    ),
    "GROUNDWORK_SECRET_KEY": (
        "a-secret-of-50-characters",
        "settings.SECRET_KEY",
        "a-secret-of-50-characters",
    ),
    "GROUNDWORK_CREDENTIAL_KEYS": (f"{KEY},{KEY}", "settings.CREDENTIAL_KEYS", [KEY, KEY]),
    "GROUNDWORK_BACKUP_URL": ("s3://bucket/backups", "settings.BACKUP_URL", "s3://bucket/backups"),
    "GROUNDWORK_BACKUP_KEEP": ("3", "settings.BACKUP_KEEP", 3),
    "GROUNDWORK_READ_AUDIT_DAYS": ("30", "settings.READ_AUDIT_DAYS", 30),
    "GROUNDWORK_AUDIT_STREAM": ("file:///srv/a.jsonl", "settings.AUDIT_STREAM", "file:///srv/a.jsonl"),
    "GROUNDWORK_AUDIT_STREAM_SECRET": (SIGNING, "settings.AUDIT_STREAM_SECRET", SIGNING),
    "GROUNDWORK_ALERTS_TO": (
        "ops@example.org, https://chat.example.org/hook",
        "settings.ALERTS_TO",
        ["ops@example.org", "https://chat.example.org/hook"],
    ),
    "GROUNDWORK_STATUS_PAGE": ("public", "settings.STATUS_PAGE", "public"),
    "GROUNDWORK_BACKUP_VERIFY_DAYS": ("7", "settings.BACKUP_VERIFY_DAYS", 7),
    "GROUNDWORK_BACKUP_KEY": (f"{KEY},{KEY}", "settings.BACKUP_KEYS", [KEY, KEY]),
    "GROUNDWORK_ALLOWED_HOSTS": (
        "a.example.org, b.example.org",
        "settings.ALLOWED_HOSTS",
        ["a.example.org", "b.example.org"],
    ),
    "GROUNDWORK_TRUSTED_ORIGINS": (
        "https://a.example.org",
        "settings.CSRF_TRUSTED_ORIGINS",
        ["https://a.example.org"],
    ),
    "GROUNDWORK_TRUST_PROXY": (
        "1",
        "[settings.TRUST_PROXY, *settings.SECURE_PROXY_SSL_HEADER]",
        [True, "HTTP_X_FORWARDED_PROTO", "https"],
    ),
    "GROUNDWORK_HTTPS": (
        "0",
        "[settings.SESSION_COOKIE_SECURE, settings.SECURE_HSTS_SECONDS, settings.SECURE_SSL_REDIRECT]",
        [False, 0, False],
        PROD,
    ),
    "GROUNDWORK_SIGNUP": ("open", "settings.SIGNUP", "open"),
    "GROUNDWORK_EMAIL_URL": (
        "smtp://ann:pw@mail.example.org:587",
        "[settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_HOST_USER, settings.EMAIL_USE_TLS, settings.EMAIL_BACKEND]",
        ["mail.example.org", 587, "ann", True, "tenancy.mail.EmailBackend"],
    ),
    "GROUNDWORK_EMAIL_FROM": (
        "Desk <desk@example.org>",
        "settings.DEFAULT_FROM_EMAIL",
        "Desk <desk@example.org>",
    ),
    "GROUNDWORK_LOG_LEVEL": (
        "WARNING",
        "[settings.LOGGING['root']['level'], settings.LOGGING['loggers']['django']['level']]",
        ["WARNING", "WARNING"],
    ),
    "GROUNDWORK_LOG_FORMAT": (
        "json",
        "type(settings.LOGGING['formatters']['line']['processors'][-1]).__name__",
        "JSONRenderer",
    ),
    "GROUNDWORK_FILES_URL": (
        "s3://bucket/prefix?endpoint=https://s3.example.org",
        "settings.FILES_URL",
        "s3://bucket/prefix?endpoint=https://s3.example.org",
    ),
    "GROUNDWORK_FILES_SIGNED": ("1", "settings.FILES_SIGNED", True),
    "GROUNDWORK_FILES_CACHE_MB": ("10", "settings.FILES_CACHE_BYTES", 10_000_000),
    "GROUNDWORK_MAX_UPLOAD_MB": ("300", "settings.MAX_UPLOAD_BYTES", 300_000_000),
    "GROUNDWORK_RATE_PER_MINUTE": ("60", "settings.RATE_PER_MINUTE", 60),
    "GROUNDWORK_SEARCHES_AT_ONCE": ("3", "settings.SEARCHES_AT_ONCE", 3),
    "GROUNDWORK_TENANT_RATE_PER_MINUTE": ("0", "settings.TENANT_RATE_PER_MINUTE", 0),
    "GROUNDWORK_IMPORT_PATHS": (
        "/srv/handbooks,acme=/srv/acme",
        "settings.IMPORT_PATHS",
        ["/srv/handbooks", "acme=/srv/acme"],
    ),
    "GROUNDWORK_LISTEN_URL": (
        "postgresql://groundwork@db.internal:5433/groundwork",
        "[settings.LISTEN_DATABASE['HOST'], settings.LISTEN_DATABASE['PORT']]",
        ["db.internal", "5433"],
    ),
    "GROUNDWORK_CITUS": ("1", "settings.CITUS", True),
    "GROUNDWORK_PREPARE_STATEMENTS": ("0", "settings.PREPARE_STATEMENTS", False),
    "GROUNDWORK_REPLICA_URL": (
        "postgresql://groundwork@reads.internal:5434/groundwork?connect_timeout=7",
        "[settings.DATABASES['replica'][k] for k in ('HOST', 'PORT')] + "
        "[settings.DATABASES['replica']['OPTIONS'][k] for k in ('connect_timeout', 'keepalives_idle')]",
        ["reads.internal", "5434", "7", "5"],
    ),
    "GROUNDWORK_REPLICA_LAG_SECONDS": ("3", "settings.REPLICA_LAG_S", 3),
    "GROUNDWORK_IMPORT_MAX_FILES": ("10", "settings.IMPORT_MAX_FILES", 10),
    "GROUNDWORK_IMPORT_MAX_MB": ("10", "settings.IMPORT_MAX_BYTES", 10_000_000),
    "GROUNDWORK_FETCH_NETWORKS": ("10.2.0.0/16", "settings.FETCH_NETWORKS", ["10.2.0.0/16"]),
    "GROUNDWORK_PLUGIN_DIR": (
        "/srv/groundwork/plugins",
        "str(settings.PLUGIN_DIR)",
        "/srv/groundwork/plugins",
    ),
    "GROUNDWORK_MCP_COMMANDS": (
        "files=/usr/local/bin/mcp-files /srv/files;git=mcp-git",
        "settings.MCP_COMMANDS",
        {"files": ["/usr/local/bin/mcp-files", "/srv/files"], "git": ["mcp-git"]},
    ),
    "GROUNDWORK_EMBEDDER": (
        "openai/text-embedding-3-small",
        "settings.EMBEDDER",
        "openai/text-embedding-3-small",
    ),
    "GROUNDWORK_SUPPORT_NLI": ("/srv/models/nli", "settings.SUPPORT_NLI", "/srv/models/nli"),
    "GROUNDWORK_RERANKER": ("/srv/models/reranker.onnx", "settings.RERANKER", "/srv/models/reranker.onnx"),
    "GROUNDWORK_BROKER": (
        "orm",
        "[settings.BROKER, settings.Q_CLUSTER.get('broker_class'), settings.Q_CLUSTER['orm']]",
        ["orm", None, "default"],
    ),
    "GROUNDWORK_REDIS_URL": (
        "redis://127.0.0.1:6379/0",
        "[settings.Q_CLUSTER['redis'], 'orm' in settings.Q_CLUSTER]",
        ["redis://127.0.0.1:6379/0", False],
        DEV,
        {"GROUNDWORK_BROKER": "redis"},
    ),
    "GROUNDWORK_WORKERS": ("3", "settings.Q_CLUSTER['workers']", 3),
    "GROUNDWORK_LOOP_SLOTS": ("8", "settings.LOOP_SLOTS", 8),
    "GROUNDWORK_DRAIN_SECONDS": ("20", "settings.DRAIN_SECONDS", 20),
    "GROUNDWORK_WORKER_HEALTH_PORT": ("9001", "settings.WORKER_HEALTH_PORT", 9001),
    "GROUNDWORK_WORKER_HEALTH_HOST": ("0.0.0.0", "settings.WORKER_HEALTH_HOST", "0.0.0.0"),
    "GROUNDWORK_METRICS_TOKEN": ("0123456789abcdef", "settings.METRICS_TOKEN", "0123456789abcdef"),
    "GROUNDWORK_JOB_LEASE_S": ("5", "settings.JOB_LEASE_S", 5),
    "GROUNDWORK_INGEST_SECONDS": (
        "100",
        "[settings.INGEST_SECONDS, settings.Q_CLUSTER['timeout']]",
        [100, 360],
    ),
    "GROUNDWORK_INGEST_MEMORY_MB": ("2048", "settings.INGEST_MEMORY_MB", 2048),
    "GROUNDWORK_OCR_CPU_SECONDS": ("0", "settings.OCR_CPU_SECONDS", 0),
    "GROUNDWORK_OCR_MEMORY_MB": ("2048", "settings.OCR_MEMORY_MB", 2048),
    "GROUNDWORK_DEFAULT_MODEL": ("openai/gpt-5", "settings.DEFAULT_MODEL", "openai/gpt-5"),
    "GROUNDWORK_RUN_SECONDS": ("60", "settings.RUN_SECONDS", 60),
    "GROUNDWORK_BATCH_LOOK_SECONDS": ("60", "settings.BATCH_LOOK_S", 60),
    "GROUNDWORK_APPROVAL_HOURS": ("24", "settings.APPROVAL_HOURS", 24),
    "GROUNDWORK_ERASURE_GRACE_DAYS": ("3", "settings.ERASURE_GRACE_DAYS", 3),
    "GROUNDWORK_RETENTION_DAYS": ("30", "settings.RETENTION_DAYS", 30),
    "GROUNDWORK_CONVERSATION_DAYS": ("90", "settings.CONVERSATION_DAYS", 90),
    "GROUNDWORK_TELEMETRY": ("metadata", "settings.TELEMETRY", "metadata"),
    "GROUNDWORK_COMPATIBLE_BASE_URL": (
        "http://localhost:11434/v1",
        "provider('compatible')['base_url']",
        "http://localhost:11434/v1",
    ),
    "GROUNDWORK_COMPATIBLE_API_KEY": (
        "k1",
        "provider('compatible')['api_key']",
        "k1",
        DEV,
        {"GROUNDWORK_COMPATIBLE_BASE_URL": "http://localhost:11434/v1"},
    ),
    "GROUNDWORK_COMPATIBLE_MODELS": (
        "llama,qwen",
        "models()[:2]",
        ["compatible/llama", "compatible/qwen"],
        DEV,
        {"GROUNDWORK_COMPATIBLE_BASE_URL": "http://localhost:11434/v1"},
    ),
    "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS": ("1", "settings.ALLOW_PRIVATE_MODEL_URLS", True),
    "OPENAI_API_KEY": (
        "sk-1",
        "[provider('openai')['api_key'], any(m.startswith('openai/') for m in models())]",
        ["sk-1", True],
    ),
    "OPENAI_BASE_URL": (
        "https://models.example.org/v1",
        "[provider('compatible')['base_url'], provider('openai')]",
        ["https://models.example.org/v1", None],
        DEV,
        {"OPENAI_API_KEY": "sk-1"},
    ),
    "OPENAI_ORG_ID": (
        "org-1",
        "provider('openai')['organization']",
        "org-1",
        DEV,
        {"OPENAI_API_KEY": "sk-1"},
    ),
    "OPENAI_PROJECT_ID": (
        "proj-1",
        "provider('openai')['project']",
        "proj-1",
        DEV,
        {"OPENAI_API_KEY": "sk-1"},
    ),
    "ANTHROPIC_API_KEY": (
        "k2",
        "[provider('anthropic')['api_key'], any(m.startswith('anthropic/') for m in models())]",
        ["k2", True],
    ),
    "ANTHROPIC_BASE_URL": (
        "https://a.example.org",
        "provider('anthropic')['base_url']",
        "https://a.example.org",
        DEV,
        {"ANTHROPIC_API_KEY": "k2"},
    ),
    "GEMINI_API_KEY": (
        "k3",
        "[provider('google')['api_key'], any(m.startswith('google/') for m in models())]",
        ["k3", True],
    ),
    "GOOGLE_API_KEY": ("k4", "provider('google')['api_key']", "k4", DEV, {"GEMINI_API_KEY": "k3"}),
    "GOOGLE_GEMINI_BASE_URL": (
        "https://g.example.org",
        "provider('google')['base_url']",
        "https://g.example.org",
        DEV,
        {"GEMINI_API_KEY": "k3"},
    ),
    "GROUNDWORK_GEMINI_API_VERSION": (
        "v1beta",
        "provider('google')['api_version']",
        "v1beta",
        DEV,
        {"GEMINI_API_KEY": "k3"},
    ),
    "XAI_API_KEY": (
        "k5",
        "[provider('xai')['api_key'], any(m.startswith('xai/') for m in models())]",
        ["k5", True],
    ),
}

# Read by the tests themselves, and looked for below.
OF_TESTS = {"GROUNDWORK_SHARED_DATA", "GROUNDWORK_REQUIRE_BROWSER"}

# A value that cannot be meant, for each variable that has a form.
BAD = {
    "DATABASE_URL": "mysql://localhost/name",
    "GROUNDWORK_LISTEN_URL": "mysql://localhost/name",
    "GROUNDWORK_CITUS": "maybe",
    "GROUNDWORK_PREPARE_STATEMENTS": "maybe",
    "GROUNDWORK_REPLICA_URL": "mysql://localhost/name",
    "GROUNDWORK_REPLICA_LAG_SECONDS": "0",
    "GROUNDWORK_CREDENTIAL_KEYS": "not-a-key",
    "GROUNDWORK_BACKUP_URL": "s3://user:secret@bucket/prefix",
    "GROUNDWORK_BACKUP_KEEP": "0",
    "GROUNDWORK_READ_AUDIT_DAYS": "-1",
    "GROUNDWORK_AUDIT_STREAM": "ftp://siem.example.org",
    "GROUNDWORK_AUDIT_STREAM_SECRET": "whsec_short",
    "GROUNDWORK_ALERTS_TO": "http://chat.example.org/hook",
    "GROUNDWORK_STATUS_PAGE": "everyone",
    "GROUNDWORK_BACKUP_VERIFY_DAYS": "-1",
    "GROUNDWORK_BACKUP_KEY": "not-a-key",
    "GROUNDWORK_TRUSTED_ORIGINS": "a.example.org",
    "GROUNDWORK_TRUST_PROXY": "maybe",
    "GROUNDWORK_HTTPS": "maybe",
    "GROUNDWORK_SIGNUP": "everybody",
    "GROUNDWORK_EMAIL_URL": "http://mail.example.org",
    "GROUNDWORK_LOG_LEVEL": "LOUD",
    "GROUNDWORK_LOG_FORMAT": "xml",
    "GROUNDWORK_FILES_URL": "s3://user:secret@bucket/prefix",
    "GROUNDWORK_FILES_SIGNED": "maybe",
    "GROUNDWORK_FILES_CACHE_MB": "0",
    "GROUNDWORK_MAX_UPLOAD_MB": "0",
    "GROUNDWORK_RATE_PER_MINUTE": "-1",
    "GROUNDWORK_SEARCHES_AT_ONCE": "-1",
    "GROUNDWORK_TENANT_RATE_PER_MINUTE": "many",
    "GROUNDWORK_IMPORT_PATHS": "relative/path",
    "GROUNDWORK_IMPORT_MAX_FILES": "1.5",
    "GROUNDWORK_IMPORT_MAX_MB": "",
    "GROUNDWORK_FETCH_NETWORKS": "10.2.0.1/16",
    "GROUNDWORK_MCP_COMMANDS": "no equals sign",
    "GROUNDWORK_EMBEDDER": "bigger",
    "GROUNDWORK_BROKER": "rabbit",
    "GROUNDWORK_REDIS_URL": "127.0.0.1:6379",
    "GROUNDWORK_WORKERS": "two",
    "GROUNDWORK_LOOP_SLOTS": "-3",
    "GROUNDWORK_DRAIN_SECONDS": "-1",
    "GROUNDWORK_WORKER_HEALTH_PORT": "65536",
    "GROUNDWORK_METRICS_TOKEN": "too-short",
    "GROUNDWORK_JOB_LEASE_S": "0",
    "GROUNDWORK_INGEST_SECONDS": "soon",
    "GROUNDWORK_INGEST_MEMORY_MB": "1G",
    "GROUNDWORK_OCR_CPU_SECONDS": "much",
    "GROUNDWORK_OCR_MEMORY_MB": "2G",
    "GROUNDWORK_RUN_SECONDS": "0",
    "GROUNDWORK_BATCH_LOOK_SECONDS": "0",
    "GROUNDWORK_APPROVAL_HOURS": "0",
    "GROUNDWORK_ERASURE_GRACE_DAYS": "-1",
    "GROUNDWORK_RETENTION_DAYS": "-1",
    "GROUNDWORK_CONVERSATION_DAYS": "x",
    "GROUNDWORK_TELEMETRY": "all",
    "GROUNDWORK_COMPATIBLE_BASE_URL": "localhost:11434",
    "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS": "perhaps",
    "GROUNDWORK_REQUIRE_BROWSER": "perhaps",
    "OPENAI_BASE_URL": "ftp://example.org",
    "ANTHROPIC_BASE_URL": "example.org",
    "GOOGLE_GEMINI_BASE_URL": "https://",
    "GROUNDWORK_GEMINI_API_VERSION": "v2",
}
# Any text may be meant: names, keys, addresses of mail, paths that another machine has.
FREE = {
    "GROUNDWORK_DATA_DIR",
    "GROUNDWORK_SECRET_KEY",
    "GROUNDWORK_ALLOWED_HOSTS",
    "GROUNDWORK_EMAIL_FROM",
    "GROUNDWORK_WORKER_HEALTH_HOST",
    "GROUNDWORK_PLUGIN_DIR",
    "GROUNDWORK_RERANKER",
    "GROUNDWORK_SUPPORT_NLI",
    "GROUNDWORK_DEFAULT_MODEL",
    "GROUNDWORK_COMPATIBLE_API_KEY",
    "GROUNDWORK_COMPATIBLE_MODELS",
    "GROUNDWORK_SHARED_DATA",
    "OPENAI_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "XAI_API_KEY",
}

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "clients/python/README.md",
    ROOT / ".env.example",
    ROOT / "compose.yaml",
    ROOT / "Dockerfile",
    ROOT / "Makefile",
]
NAMES = re.compile(r"\b(?:GROUNDWORK|OPENAI|ANTHROPIC|GEMINI|GOOGLE|XAI|DATABASE)_[A-Z0-9_]*[A-Z0-9]\b")


@cache
def clean() -> dict[str, str]:
    """Return an environment that states none of the variables, and where there is a data directory."""
    kept = {name: value for name, value in os.environ.items() if name not in variables.VARIABLES}
    for name in ("DJANGO_SETTINGS_MODULE", "DJANGO_DB_POOL"):
        kept.pop(name, None)
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}"}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that starts the settings once for each case, all in one process."""
    folder = str(tmp_path_factory.mktemp("data"))
    base = {"GROUNDWORK_DATA_DIR": folder, "GROUNDWORK_SECRET_KEY": "only-for-this-test"}

    def started(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
        given = [{**case, "env": {**base, **case["env"]}} for case in cases]
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("settings_probe.py"))],
            input=json.dumps(given),
            env=clean(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    return started


def test_tables_of_this_test_are_whole() -> None:
    assert set(EFFECTS) | OF_TESTS == set(variables.VARIABLES)
    assert set(BAD) | FREE == set(variables.VARIABLES)
    assert not set(BAD) & FREE


def test_every_variable_is_accepted_and_has_its_effect(start: Any) -> None:
    cases, expected = [], {}
    for name, (value, show, effect, *rest) in EFFECTS.items():
        module, others = (*rest, {})[:2] if rest else (DEV, {})
        cases.append({"env": {**others, name: value}, "module": module, "show": show})
        expected[name] = {"value": effect}
    found = dict(zip(EFFECTS, start(cases), strict=True))
    assert found == expected
    # Without it, there is something else: the effect is the variable's.
    without = [
        {**case, "env": {k: v for k, v in case["env"].items() if k != name}}
        for name, case in zip(EFFECTS, cases, strict=True)
    ]
    same = [name for name, other in zip(EFFECTS, start(without), strict=True) if other == expected[name]]
    assert same == []


def test_what_a_variable_sets_is_read_by_the_product() -> None:
    """A setting that only the settings know is none."""
    code = "\n".join(
        path.read_text()
        for folder in ("platform", "apps")
        for path in (ROOT / folder).rglob("*.py")
        if "config/settings" not in str(path)
    )
    base = (ROOT / "platform/config/settings/base.py").read_text()
    ours = re.findall(r'^([A-Z][A-Z_]+)(?:: [^=]+)? = env\.get\("', base, re.MULTILINE)
    assert len(ours) > 20
    of_django = {"SECRET_KEY", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "DEFAULT_FROM_EMAIL"}
    unread = [
        name
        for name in set(ours) - of_django
        if not re.search(rf"settings\.{name}\b|settings, \"{name}\"", code)
    ]
    assert unread == []


@pytest.mark.parametrize("name", sorted(OF_TESTS))
def test_variables_of_the_tests_are_read_by_them(name: str) -> None:
    texts = (path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    assert any(f'"{name}"' in text for text in texts)


def test_bad_values_are_refused_in_one_line_that_names_them(start: Any) -> None:
    cases = [{"env": {name: value}, "module": DEV, "show": "settings.DEBUG"} for name, value in BAD.items()]
    for name, found in zip(BAD, start(cases), strict=True):
        assert name in found.get("error", "nothing was said"), (name, found)
        assert "\n" not in found["error"]
        assert "expected" in found["error"], found
        assert "invalid literal" not in found["error"]
    assert "not-a-key" not in start([cases[list(BAD).index("GROUNDWORK_CREDENTIAL_KEYS")]])[0]["error"]


def test_bad_value_ends_a_command_with_its_line() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={
            **clean(),
            "GROUNDWORK_DATA_DIR": os.environ["GROUNDWORK_DATA_DIR"],
            "GROUNDWORK_WORKERS": "two",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Settings: GROUNDWORK_WORKERS='two': expected a whole number")
    assert done.stderr.count("\n") == 1


def test_redis_broker_asks_for_its_address(start: Any) -> None:
    case = {"env": {"GROUNDWORK_BROKER": "redis"}, "module": DEV, "show": "settings.BROKER"}
    assert "needs GROUNDWORK_REDIS_URL" in start([case])[0]["error"]


def test_production_asks_for_its_secret(start: Any) -> None:
    case = {"env": {"GROUNDWORK_SECRET_KEY": ""}, "module": PROD, "show": "settings.SECRET_KEY"}
    assert "must be set in production" in start([case])[0]["error"]


def test_defaults_of_the_example_are_accepted(start: Any) -> None:
    stated = dict(re.findall(r"^#([A-Z_]+)=(.+)$", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert set(stated) >= {"GROUNDWORK_JOB_LEASE_S", "GROUNDWORK_GEMINI_API_VERSION"}
    stated.pop("GROUNDWORK_DATA_DIR")
    case = {"env": stated, "module": DEV, "show": "settings.JOB_LEASE_S"}
    assert start([case]) == [{"value": float(stated["GROUNDWORK_JOB_LEASE_S"])}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_variables_that_there_are(page: Path) -> None:
    named = set(NAMES.findall(page.read_text(encoding="utf-8")))
    assert named - set(variables.VARIABLES) == set()


def test_code_reads_only_variables_that_there_are() -> None:
    for folder in ("platform", "apps", "clients", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r'"(GROUNDWORK_[A-Z_]+[A-Z])"', path.read_text()):
                assert name in variables.VARIABLES, f"{path}: {name}"


def test_scripts_and_tests_read_only_variables_that_there_are() -> None:
    """Another one that begins like these stops each process that reads its settings."""
    read = re.compile(r"\$\{?(GROUNDWORK_[A-Z_]+[A-Z])|environ(?:\.get\(|\[)\"(GROUNDWORK_[A-Z_]+[A-Z])")
    paths = [*(ROOT / "benchmarks").glob("*.sh"), ROOT / ".ci/run", *(ROOT / "tests").rglob("*.py")]
    named = {(path.name, a or b) for path in paths for a, b in read.findall(path.read_text())}
    assert ("nightly.sh", "GROUNDWORK_SHARED_DATA") in named
    assert {one for one in named if one[1] not in variables.VARIABLES} == set()


def test_settings_of_docker_reach_its_containers() -> None:
    import yaml

    shared = yaml.safe_load((ROOT / "compose.yaml").read_text())["x-groundwork"]
    assert {"path": ".env", "required": False} in shared["env_file"]


def test_worker_processes_are_as_many_as_suit_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for gigabytes, expected in ((2, 1), (16, 2)):
        pages = {"SC_PHYS_PAGES": gigabytes * 10**9 // 4096, "SC_PAGE_SIZE": 4096}
        monkeypatch.setattr(os, "sysconf", pages.__getitem__)
        assert env.get("GROUNDWORK_WORKERS", {}) == expected
    assert env.get("GROUNDWORK_WORKERS", {"GROUNDWORK_WORKERS": "5"}) == 5
