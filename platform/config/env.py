"""Every environment variable Groundwork reads, declared once and parsed loudly.

``.env.example`` is generated from this table (``manage.py env_example``), and an unknown ``GROUNDWORK_*`` name is an
error with the nearest known one, so that a typo never passes for a default.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from config import env_values as values
from config.env_values import SecretRefused


class SettingsError(Exception):
    """An environment variable cannot be used; the message names it and says what is expected."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: its name, what it is for, its default as text ("" = unset) and its parser."""

    name: str
    help: str
    default: str
    parse: Callable[[str], Any]


VARIABLES: dict[str, Variable] = {
    v.name: v
    for v in (
        Variable(
            "DATABASE_URL",
            "External Postgres 16+ with pgvector (postgresql://user:password@host:port/name). Unset: the embedded one.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_LISTEN_URL",
            "Direct address of the same database, for what needs a session of its own (LISTEN, session locks, index builds), where DATABASE_URL leads through a transaction pooler such as PgBouncer. Unset: DATABASE_URL.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_DATA_DIR",
            "Where the embedded database, uploaded files and the embedder's model live.",
            "var",
            values.as_path,
        ),
        Variable(
            "GROUNDWORK_FILES_URL",
            "Where files are kept that several machines share: s3://bucket/prefix?endpoint=https://host&region=name, gs://bucket/prefix, azure://container/prefix?account=name. Credentials as boto3 and its like read them (AWS_ACCESS_KEY_ID, ...). Unset: the data directory.",
            "",
            values.as_files_url,
        ),
        Variable(
            "GROUNDWORK_FILES_CACHE_MB",
            "Megabytes of this machine's disk for copies of files that are kept elsewhere.",
            "2000",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_SECRET_KEY",
            "Signs sessions and links. Required in production; made and kept in the data directory otherwise.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_CREDENTIAL_KEYS",
            "Comma-separated Fernet keys that encrypt stored provider keys; the first encrypts, all decrypt. Unset: derived from the secret key.",
            "",
            values.as_fernet_keys,
        ),
        Variable(
            "GROUNDWORK_ALLOWED_HOSTS",
            "Comma-separated host names the web server answers to.",
            "localhost,127.0.0.1,[::1]",
            values.as_list,
        ),
        Variable(
            "GROUNDWORK_TRUSTED_ORIGINS",
            "Comma-separated origins (https://host) behind a TLS proxy.",
            "",
            values.as_origins,
        ),
        Variable(
            "GROUNDWORK_TRUST_PROXY",
            "1 when a proxy sets X-Forwarded-Proto and X-Forwarded-For.",
            "0",
            values.as_bool,
        ),
        Variable(
            "GROUNDWORK_HTTPS",
            "1 marks cookies secure and turns HSTS on (production settings).",
            "1",
            values.as_bool,
        ),
        Variable(
            "GROUNDWORK_SIGNUP",
            "Who may register: open (anyone, with their own workspace) or invite.",
            "invite",
            values.as_choice("open", "invite"),
        ),
        Variable(
            "GROUNDWORK_EMAIL_URL",
            "SMTP server (smtp://user:password@host:587). Unset: mail is printed to the log.",
            "",
            str,
        ),
        Variable("GROUNDWORK_EMAIL_FROM", "Sender of mail.", "Groundwork <noreply@localhost>", str),
        Variable(
            "GROUNDWORK_LOG_LEVEL",
            "DEBUG, INFO, WARNING or ERROR.",
            "INFO",
            values.as_choice("DEBUG", "INFO", "WARNING", "ERROR"),
        ),
        Variable("GROUNDWORK_LOG_FORMAT", "console or json.", "console", values.as_choice("console", "json")),
        Variable(
            "GROUNDWORK_MAX_UPLOAD_MB",
            "Largest file a person may upload, in megabytes.",
            "200",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_RATE_PER_MINUTE",
            "REST requests a minute of each member and API key, where their workspace sets no limit; a sixth of it may come at once. 0: no limit.",
            "6000",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_TENANT_RATE_PER_MINUTE",
            "Most REST requests a minute of a whole workspace. 0: no limit.",
            "30000",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_IMPORT_PATHS",
            "Comma-separated folders of the server below which people may import folders, git repositories and Chroma folders: /srv/handbooks for every workspace, acme=/srv/acme for one. Unset: none.",
            "",
            values.as_import_paths,
        ),
        Variable("GROUNDWORK_IMPORT_MAX_FILES", "Most entries of one import.", "50000", values.as_positive),
        Variable(
            "GROUNDWORK_IMPORT_MAX_MB", "Most megabytes of one import, unpacked.", "4000", values.as_positive
        ),
        Variable(
            "GROUNDWORK_FETCH_NETWORKS",
            "Comma-separated networks (10.2.0.0/16) that web pages may be fetched from, webhooks sent to, and tools of workspaces call, although they are not public.",
            "",
            values.as_networks,
        ),
        Variable(
            "GROUNDWORK_PLUGIN_DIR",
            "Folder of the server with Python files whose tools workspaces may add: code that runs with all rights of the server. Unset: none, only installed packages.",
            "",
            values.as_optional_path,
        ),
        Variable(
            "GROUNDWORK_MCP_COMMANDS",
            "MCP servers that are programs of the server and that every workspace may add, by name: files=/usr/local/bin/mcp-files /srv/files;git=mcp-git. No shell reads them. Unset: none.",
            "",
            values.as_commands,
        ),
        Variable(
            "GROUNDWORK_EMBEDDER",
            "Embedding model of new collections: minilm (local), local/<name> (see embedder_add), openai/<model> or google/<model>.",
            "minilm",
            values.as_embedder,
        ),
        Variable(
            "GROUNDWORK_RERANKER",
            "Cross-encoder that reorders the best passages of every search: path of an ONNX file, with tokenizer.json next to it. Unset: none.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_SUPPORT_NLI",
            "Folder with an entailment model that checks answers against their sources a second time: model.onnx, tokenizer.json and config.json, which names its three labels. Unset: none.",
            "",
            values.as_optional_path,
        ),
        Variable(
            "GROUNDWORK_BROKER",
            "Queue under the jobs: notify (Postgres LISTEN/NOTIFY), orm or redis.",
            "notify",
            values.as_choice("notify", "orm", "redis"),
        ),
        Variable(
            "GROUNDWORK_REDIS_URL",
            "Redis of the redis broker (redis://host:6379/0).",
            "",
            values.as_url("rediss", "unix", "redis"),
        ),
        Variable("GROUNDWORK_WORKERS", "Worker processes.", "2", values.as_positive),
        Variable(
            "GROUNDWORK_WORKER_HEALTH_PORT",
            "Port on which the worker answers /livez and /readyz. 0: none.",
            "0",
            values.as_port,
        ),
        Variable(
            "GROUNDWORK_WORKER_HEALTH_HOST",
            "Address that port is opened on; 0.0.0.0 where probes come from outside, as in Kubernetes.",
            "127.0.0.1",
            str,
        ),
        Variable(
            "GROUNDWORK_LOOP_SLOTS", "Chat runs one worker process carries at once.", "64", values.as_positive
        ),
        Variable(
            "GROUNDWORK_JOB_LEASE_S",
            "Seconds without a heartbeat after which a job is taken over.",
            "30",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_INGEST_SECONDS",
            "Wall-clock limit for reading one document.",
            "600",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_INGEST_MEMORY_MB",
            "Memory limit of the child process that reads a document.",
            "1024",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_OCR_CPU_SECONDS",
            "Processor seconds per month that text recognition (OCR) may cost a workspace that sets no number of its own; a dense page takes 5 to 10. 0: no text recognition on this server.",
            "36000",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_OCR_MEMORY_MB",
            "Memory limit of the child process that reads scanned pages.",
            "1536",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_DEFAULT_MODEL",
            "Model a new conversation starts with; unset: the one its owner asked last, else the first configured one, else extractive.",
            "",
            str,
        ),
        Variable("GROUNDWORK_RUN_SECONDS", "Wall-clock limit of one chat run.", "300", values.as_positive),
        Variable(
            "GROUNDWORK_BATCH_LOOK_SECONDS",
            "Most seconds between two looks at a batch of half-price model calls; the first looks come sooner.",
            "600",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_APPROVAL_HOURS",
            "Hours a run waits for a decision about a tool call; then the call is rejected.",
            "72",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_RETENTION_DAYS",
            "Days after which what was said in ended runs is removed (events, arguments and results of tools), where a workspace has no rule of its own; 0 keeps it for ever. Answers, citations, usage and audit stay.",
            "0",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_CONVERSATION_DAYS",
            "Days after their last question in which conversations are kept, where a workspace has no rule of its own; 0 keeps them for ever. What they cost and the audit trail stay.",
            "0",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_TELEMETRY",
            "OpenTelemetry spans of runs, model and tool calls: off, metadata, or content (what was said goes in too). Needs opentelemetry-sdk and its OTEL_ variables.",
            "off",
            values.as_choice("off", "metadata", "content"),
        ),
        Variable(
            "GROUNDWORK_COMPATIBLE_BASE_URL",
            "OpenAI-compatible server (Ollama, vLLM, llama.cpp), for example http://localhost:11434/v1.",
            "",
            values.as_url("https", "http"),
        ),
        Variable("GROUNDWORK_COMPATIBLE_API_KEY", "Key of that server, if it wants one.", "", str),
        Variable(
            "GROUNDWORK_COMPATIBLE_MODELS",
            "Comma-separated model names of that server; unset: asked from its /models.",
            "",
            values.as_list,
        ),
        Variable(
            "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS",
            "1 lets a workspace's admins name model servers in this server's own network.",
            "0",
            values.as_bool,
        ),
        Variable("GROUNDWORK_SHARED_DATA", "Folder of real documents for tests and benchmarks.", "", str),
        Variable(
            "GROUNDWORK_REQUIRE_BROWSER",
            "1 makes a missing Chromium fail the browser tests instead of skipping them.",
            "0",
            values.as_bool,
        ),
        Variable("OPENAI_API_KEY", "Makes OpenAI models available.", "", str),
        Variable(
            "OPENAI_BASE_URL",
            "Another OpenAI endpoint, or an OpenAI-compatible server.",
            "",
            values.as_url("http", "https"),
        ),
        Variable("OPENAI_ORG_ID", "OpenAI organisation that the key of the environment acts for.", "", str),
        Variable("OPENAI_PROJECT_ID", "OpenAI project that it acts for.", "", str),
        Variable("ANTHROPIC_API_KEY", "Makes Anthropic models available.", "", str),
        Variable("ANTHROPIC_BASE_URL", "Another Anthropic endpoint.", "", values.as_url("http", "https")),
        Variable("GEMINI_API_KEY", "Makes Gemini models available (GOOGLE_API_KEY too).", "", str),
        Variable("GOOGLE_API_KEY", "Same as GEMINI_API_KEY; wins when both are set.", "", str),
        Variable("GOOGLE_GEMINI_BASE_URL", "Another Gemini endpoint.", "", values.as_url("http", "https")),
        Variable(
            "GROUNDWORK_GEMINI_API_VERSION",
            "Version of the Gemini API: v1, or v1beta for preview features.",
            "v1",
            values.as_choice("v1", "v1beta"),
        ),
        Variable("XAI_API_KEY", "Makes xAI models available.", "", str),
    )
}


def get(name: str, environ: Mapping[str, str] | None = None) -> Any:
    """Return the parsed value of a declared variable.

    Raises:
        SettingsError: the text cannot be parsed; says what is expected.
        KeyError: the name is not declared (a programming error).
    """
    variable = VARIABLES[name]
    text = (environ if environ is not None else os.environ).get(name, variable.default)
    try:
        return variable.parse(text)
    except SecretRefused as error:
        raise SettingsError(f"{name}: {error}. {variable.help}") from None
    except ValueError as error:
        raise SettingsError(f"{name}={text!r}: {error}. {variable.help}") from error


def refuse_invalid(environ: Mapping[str, str] | None = None) -> None:
    """Raise SettingsError when a declared variable cannot be parsed, also one that is read much later."""
    for name in VARIABLES:
        get(name, environ)


def refuse_unknown(environ: Mapping[str, str] | None = None) -> None:
    """Raise SettingsError when a GROUNDWORK_* variable is set that nothing reads."""
    for name in environ if environ is not None else os.environ:
        if name.startswith("GROUNDWORK_") and name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise SettingsError(f"{name} is not a setting of Groundwork.{hint}")


def load_file(path: Path) -> None:
    """Put the ``NAME=value`` lines of a .env file into the environment, where the name is not set already."""
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip().isidentifier():
            raise SettingsError(f"{path.name}, line {number}: expected NAME=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        os.environ.setdefault(name.strip(), value)


def example() -> str:
    """Return the text of ``.env.example``: every variable with its help and default."""
    lines = ["# Generated by `python manage.py env_example`. Copy to .env and change what you need.", ""]
    for variable in VARIABLES.values():
        lines += [f"# {variable.help}", f"#{variable.name}={variable.default}", ""]
    return "\n".join(lines)


def database_settings(url: str, *, pool: bool, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """Return Django's settings of the one database.

    Args:
        url: ``postgresql://user:password@host:port/name?option=value``; a Unix socket folder goes into ``?host=``.
        pool: keep a psycopg pool (web processes). Never in the worker: a forked pool has no threads and deadlocks.
        variable: where the address is from, for errors.

    Raises:
        SettingsError: the URL is not one of Postgres or names no database.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise SettingsError(f"{variable}: expected postgresql://user:password@host:port/name")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise SettingsError(f"{variable} names no database: it must end in /name")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host = options.pop("host", "") or parts.hostname or ""
    if pool:
        options["pool"] = {"min_size": 1, "max_size": 10, "timeout": 15, "max_idle": 120}
    return {
        "ENGINE": "tenancy.database",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0 if pool else 600,
        "CONN_HEALTH_CHECKS": not pool,
        "OPTIONS": options,
    }


def email_settings(url: str) -> dict[str, Any]:
    """Return Django's EMAIL_* settings of ``smtp://user:password@host:port`` (``smtps`` for TLS from the start)."""
    parts = urlsplit(url)
    if parts.scheme not in {"smtp", "smtps"} or not parts.hostname:
        raise SettingsError("GROUNDWORK_EMAIL_URL: expected smtp://user:password@host:587")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": parts.port or (465 if parts.scheme == "smtps" else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp" and parts.port != 25,
        "EMAIL_TIMEOUT": 20,
    }
