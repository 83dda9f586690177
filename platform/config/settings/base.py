"""Settings that hold everywhere; every choice an operator has comes from ``config.env``."""

from __future__ import annotations

import os
from pathlib import Path

from config import env
from config.data_dir import data_dir_open
from config.embedded.state import read_state
from config.logs import logging_settings
from config.secrets import kept_secret

ROOT = Path(__file__).resolve().parents[3]
env.load_file(ROOT / ".env")
env.refuse_unknown()
env.refuse_invalid()

DATA_DIR: Path = env.get("GROUNDWORK_DATA_DIR")
if not DATA_DIR.is_absolute():
    DATA_DIR = ROOT / DATA_DIR
data_dir_open(DATA_DIR)
MEDIA_ROOT = DATA_DIR / "files"
FILES_URL: str = env.get("GROUNDWORK_FILES_URL")
FILES_SIGNED: bool = env.get("GROUNDWORK_FILES_SIGNED")
FILES_CACHE_BYTES: int = env.get("GROUNDWORK_FILES_CACHE_MB") * 1_000_000

SECRET_KEY = env.get("GROUNDWORK_SECRET_KEY") or kept_secret(DATA_DIR, "secret_key")
CREDENTIAL_KEYS: list[str] = env.get("GROUNDWORK_CREDENTIAL_KEYS")
BACKUP_URL: str = env.get("GROUNDWORK_BACKUP_URL")
BACKUP_KEEP: int = env.get("GROUNDWORK_BACKUP_KEEP")
BACKUP_VERIFY_DAYS: int = env.get("GROUNDWORK_BACKUP_VERIFY_DAYS")
BACKUP_KEYS: list[str] = env.get("GROUNDWORK_BACKUP_KEY")
READ_AUDIT_DAYS: int = env.get("GROUNDWORK_READ_AUDIT_DAYS")
ALERTS_TO: tuple[str, ...] = env.get("GROUNDWORK_ALERTS_TO")
AUDIT_STREAM: str = env.get("GROUNDWORK_AUDIT_STREAM")
AUDIT_STREAM_SECRET: str = env.get("GROUNDWORK_AUDIT_STREAM_SECRET")
STATUS_PAGE: str = env.get("GROUNDWORK_STATUS_PAGE")
DEBUG = False
STYLE_GUIDE = False
ALLOWED_HOSTS: list[str] = env.get("GROUNDWORK_ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS: list[str] = env.get("GROUNDWORK_TRUSTED_ORIGINS")

# The worker forks and must not pool; it says so before Django starts (jobs: manage.py worker).
_POOL = os.environ.get("DJANGO_DB_POOL", "0") == "1"
_URL = env.get("DATABASE_URL") or read_state(DATA_DIR) or "postgresql://localhost/groundwork"
DATABASES = {"default": env.database_settings(_URL, pool=_POOL)}
_LISTEN_URL = env.get("GROUNDWORK_LISTEN_URL")
# For what needs a session of its own (tenancy.database.direct); None: DATABASES serves it too.
LISTEN_DATABASE = (
    env.database_settings(_LISTEN_URL, pool=False, variable="GROUNDWORK_LISTEN_URL") if _LISTEN_URL else None
)
# Role and tenant go to the database in messages of their own (tenancy.database.cursors).
CITUS: bool = env.get("GROUNDWORK_CITUS")
# Only where a connection is the server's own, which each finds out (tenancy.database.prepared).
PREPARE_STATEMENTS: bool = env.get("GROUNDWORK_PREPARE_STATEMENTS")
_REPLICA_URL = env.get("GROUNDWORK_REPLICA_URL")
if _REPLICA_URL:
    DATABASES["replica"] = env.replica_settings(_REPLICA_URL, pool=_POOL)  # tenancy.database.replica
REPLICA_LAG_S: int = env.get("GROUNDWORK_REPLICA_LAG_SECONDS")
# What waits while it holds a database connection fails instead of being logged (tenancy.database.waiting).
STRICT_WAITS = False
OCR_NICE = 19  # recognition takes what processor time nobody else wants
BACKUP_NICE = (
    10  # on a busy machine a backup still goes on: its snapshot keeps old rows for as long as it takes
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "tenancy",  # first: its migrate and flush run as the login role
    "web",
    "config.apps.GroundworkAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "csp",
    "django_filters",
    "django_htmx",
    "django_q",
    "drf_spectacular",
    "rest_framework",
    "template_partials",
    "jobs",
    "blobs",
    "backups",
    "exports",
    "erasure",
    "webhooks",
    "notices",
    "audit",
    "budgets",
    "runs",
    "batches",
    "sso",
    "apps.collections",
    "apps.tools",
    "apps.conversations",
    "apps.datasets",
    "apps.evaluations",
    "config",
]

MIDDLEWARE = [
    "web.metrics.requests_measured",
    "web.short_address.short_address",
    "web.middleware.request_id",
    "web.middleware.answers_let_go",
    "web.compression.PagesCompressed",
    "django.middleware.security.SecurityMiddleware",
    "web.static_files.StaticFiles",
    "web.middleware.head_as_get",
    "csp.middleware.CSPMiddleware",
    "web.middleware.devices_limited",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "web.reader_language.language_chosen",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "tenancy.middleware.tenant_from_url",
    "web.middleware.DomainErrors",
    "audit.middleware.reads_recorded",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.context_processors.shell",
                "apps.conversations.chat.context_processors.recent",
            ]
        },
    }
]

# People and sign-in
AUTH_USER_MODEL = "tenancy.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "web:home"
ACCOUNT_ADAPTER = "web.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
# For those who register on their own; ``web.accounts`` says who else is asked: nobody.
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_LOGIN_BY_CODE_ENABLED = False
ACCOUNT_LOGOUT_ON_GET = False
# Attempts to sign in are counted by ``web.attempts``: allauth's count by address lets anybody lock anybody out.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
ACCOUNT_FORMS = {"login": "web.sign_in.LoginForm", "signup": "web.signup.SignupForm"}
CACHES = {"default": {"BACKEND": "web.shared_cache.SharedCache"}}  # of allauth: mails, sign-ups, used codes
MFA_ADAPTER = "tenancy.second_factors.SecondFactorAdapter"
MFA_FORMS = {
    "authenticate": "web.sign_in.CodeForm",
    "reauthenticate": "web.sign_in.CodeAgainForm",
    "authenticate_webauthn": "web.passkeys.forms.SecondForm",
}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
SIGNUP: str = env.get("GROUNDWORK_SIGNUP")

SESSION_ENGINE = "web.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "web.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if env.get("GROUNDWORK_TRUST_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
TRUST_PROXY: bool = env.get("GROUNDWORK_TRUST_PROXY")

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "media-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "worker-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# Files
STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "static"]
STATIC_ROOT = DATA_DIR / "static"
MAX_UPLOAD_BYTES: int = env.get("GROUNDWORK_MAX_UPLOAD_MB") * 1_000_000
IMPORT_PATHS: list[str] = env.get("GROUNDWORK_IMPORT_PATHS")
IMPORT_MAX_FILES: int = env.get("GROUNDWORK_IMPORT_MAX_FILES")
IMPORT_MAX_BYTES: int = env.get("GROUNDWORK_IMPORT_MAX_MB") * 1_000_000
FETCH_NETWORKS: list[str] = env.get("GROUNDWORK_FETCH_NETWORKS")
PLUGIN_DIR: Path | None = env.get("GROUNDWORK_PLUGIN_DIR")
MCP_COMMANDS: dict[str, list[str]] = env.get("GROUNDWORK_MCP_COMMANDS")
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
FILE_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
STORAGES = {  # no default one: files are kept by blobs.stores
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# REST
RATE_PER_MINUTE: int = env.get("GROUNDWORK_RATE_PER_MINUTE")
SEARCHES_AT_ONCE: int = env.get("GROUNDWORK_SEARCHES_AT_ONCE")
TENANT_RATE_PER_MINUTE: int = env.get("GROUNDWORK_TENANT_RATE_PER_MINUTE")
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "web.drf.auth.ApiKeyAuthentication",
        "web.drf.auth.TenantSessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["web.drf.auth.ActionPermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["web.drf.parsers.JSONParser", "rest_framework.parsers.MultiPartParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PAGINATION_CLASS": "web.drf.pages.Pagination",
    "EXCEPTION_HANDLER": "web.drf.errors.exception_handler",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Groundwork",
    "DESCRIPTION": "Collections, search and cited chat of one workspace. Authenticate with an API key: `Authorization: Bearer <key>`.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "DecisionKind": "runs.models.PendingDecision.Kind",
        "KindEnum": ["user", "api_key"],
        "DecisionStatus": "runs.models.DecisionStatus",
        "DocumentSource": "apps.collections.models.DocumentSource",
        "ToolCallStatus": "runs.models.ToolCallStatus",
        "CallDecision": "runs.models.CallDecision",
        "CallPath": "runs.models.CallPath",
        "Delivery": "batches.delivery.Delivery",
        "NoticeWay": ["portal", "browser", "mail"],
        "DeliveryStatus": "webhooks.models.DeliveryStatus",
        "DocumentStatus": "apps.collections.models.DocumentStatus",
        "ExperimentOutputStateEnum": "apps.evaluations.models.ExperimentState",
        "ImportStatus": "apps.collections.models.ImportStatus",
        "RunStatus": "runs.models.RunStatus",
        "DatasetRowStatus": "apps.datasets.models.RowStatus",
        "GenerationStateEnum": "apps.datasets.models.GenerationState",
        "BatchStateEnum": "batches.models.BatchState",
        "QuestionType": "apps.datasets.models.QuestionType",
        "TypeEnum": ["function"],
        "SplitEnum": "apps.datasets.models.Split",
        "DatasetWorkStatus": "apps.datasets.models.WorkStatus",
        "DatasetCheckKind": "apps.datasets.models.DatasetCheck.Kind",
        "Role": "tenancy.models.Role",
        "ChangeKind": ["changed", "added", "removed"],
        "ToolSourceKind": "apps.tools.models.ToolSource.Kind",
        "ToolSourceStatus": "apps.tools.models.ToolSource.Status",
        "ToolVersionState": "apps.tools.models.ToolVersion.State",
        "ToolCredentialPlacement": "apps.tools.models.ToolCredential.Placement",
        "PeriodEnum": "budgets.models.BudgetPeriod",
        "TargetKindEnum": "apps.tools.models.ToolGrant.Target",
        "ToolLimitKind": "apps.tools.models.ToolLimit.Kind",
        "ToolLimitPeriod": "apps.tools.models.ToolLimit.Period",
        "ToolLimitTarget": "apps.tools.models.ToolLimit.Target",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "web.drf.schema.document_errors",
    ],
}

# Jobs
BROKER: str = env.get("GROUNDWORK_BROKER")
JOB_LEASE_S: int = env.get("GROUNDWORK_JOB_LEASE_S")
LOOP_SLOTS: int = env.get("GROUNDWORK_LOOP_SLOTS")
DRAIN_SECONDS: int = env.get("GROUNDWORK_DRAIN_SECONDS")
WORKER_HEALTH_PORT: int = env.get("GROUNDWORK_WORKER_HEALTH_PORT")
WORKER_HEALTH_HOST: str = env.get("GROUNDWORK_WORKER_HEALTH_HOST")
METRICS_TOKEN: str = env.get("GROUNDWORK_METRICS_TOKEN")
RUN_SECONDS: int = env.get("GROUNDWORK_RUN_SECONDS")
BATCH_LOOK_S: int = env.get("GROUNDWORK_BATCH_LOOK_SECONDS")
APPROVAL_HOURS: int = env.get("GROUNDWORK_APPROVAL_HOURS")
ERASURE_GRACE_DAYS: int = env.get("GROUNDWORK_ERASURE_GRACE_DAYS")
RETENTION_DAYS: int = env.get("GROUNDWORK_RETENTION_DAYS")
CONVERSATION_DAYS: int = env.get("GROUNDWORK_CONVERSATION_DAYS")
TELEMETRY: str = env.get("GROUNDWORK_TELEMETRY")
INGEST_SECONDS: int = env.get("GROUNDWORK_INGEST_SECONDS")
INGEST_MEMORY_MB: int = env.get("GROUNDWORK_INGEST_MEMORY_MB")
OCR_CPU_SECONDS: int = env.get("GROUNDWORK_OCR_CPU_SECONDS")
OCR_MEMORY_MB: int = env.get("GROUNDWORK_OCR_MEMORY_MB")
_TASK_TIMEOUT = INGEST_SECONDS * 3 + 60  # one document: read, embed and index
Q_CLUSTER = {
    "name": "groundwork",
    "workers": env.get("GROUNDWORK_WORKERS"),
    "timeout": _TASK_TIMEOUT,
    "retry": _TASK_TIMEOUT + 60,
    "recycle": 1_000_000_000,  # a worker carries live chat runs; it is never recycled under them
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "catch_up": False,
    "label": "Queue",
    "orm": "default",
    "poll": 0.5,
    "bulk": 1,
    **({"broker_class": "jobs.broker.NotifyBroker"} if BROKER == "notify" else {}),
}
if BROKER == "redis":
    Q_CLUSTER.pop("orm")
    Q_CLUSTER["redis"] = env.get("GROUNDWORK_REDIS_URL")
    if not Q_CLUSTER["redis"]:
        raise env.SettingsError("GROUNDWORK_BROKER=redis needs GROUNDWORK_REDIS_URL.")

# Models
EMBEDDER: str = env.get("GROUNDWORK_EMBEDDER")
RERANKER: str = env.get("GROUNDWORK_RERANKER")
SUPPORT_NLI: str = env.get("GROUNDWORK_SUPPORT_NLI")
ALLOW_PRIVATE_MODEL_URLS: bool = env.get("GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS")
DEFAULT_MODEL: str = env.get("GROUNDWORK_DEFAULT_MODEL")

# Mail
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
DEFAULT_FROM_EMAIL: str = env.get("GROUNDWORK_EMAIL_FROM")
if env.get("GROUNDWORK_EMAIL_URL"):
    EMAIL_BACKEND = "tenancy.mail.EmailBackend"
    globals().update(env.email_settings(env.get("GROUNDWORK_EMAIL_URL")))

# Languages. Which of these are offered: web.reader_language; how their catalogs are made: config.catalogs.
LANGUAGE_CODE = "en"
LANGUAGES = [
    ("en", "English"),
    ("de", "Deutsch"),
    ("fr", "Français"),
    ("es", "Español"),
    ("ja", "日本語"),
    ("ar", "العربية"),
]
LOCALE_PATHS = [ROOT / "platform" / "locale"]
FORMAT_MODULE_PATH = ["web.formats"]
LANGUAGE_COOKIE_NAME = "gw.language"
LANGUAGE_COOKIE_AGE = 31_536_000
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

SILENCED_SYSTEM_CHECKS = [
    "fields.W342"  # ChunkTerms.chunk: a foreign key that is the primary key, as TenantForeignKey needs it
]

LOGGING = logging_settings(env.get("GROUNDWORK_LOG_LEVEL"), env.get("GROUNDWORK_LOG_FORMAT"))
