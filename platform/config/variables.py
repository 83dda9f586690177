"""Every environment variable Groundwork reads: its name, what it is for, its default and its parser (``config.env``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from config import env_values as values


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
            "Direct address of the same database, needed if DATABASE_URL goes through a transaction pooler "
            "such as PgBouncer (for LISTEN, session locks and index builds). Unset: DATABASE_URL.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_CITUS",
            "1 if the database was distributed by citus_distribute: it is told role and workspace in messages of their own.",
            "0",
            values.as_bool,
        ),
        Variable(
            "GROUNDWORK_PREPARE_STATEMENTS",
            "0 sends every statement as text. 1 lets Postgres plan what comes again once per connection, except through a "
            "pooler (each connection finds that out) or with Citus.",
            "1",
            values.as_bool,
        ),
        Variable(
            "GROUNDWORK_REPLICA_URL",
            "Streaming replica of the same database that web servers read searches, lists and exports from. Unset: none.",
            "",
            str,
        ),
        Variable(
            "GROUNDWORK_REPLICA_LAG_SECONDS",
            "Seconds that the replica may be behind; further behind it is not read.",
            "10",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_DATA_DIR",
            "Folder of the embedded database, uploaded files and the embedder's model.",
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
            "GROUNDWORK_FILES_SIGNED",
            "1 sends browsers that download a file to the S3 store itself, by an address that holds for a minute. The store must be reachable from browsers.",
            "0",
            values.as_bool,
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
            "GROUNDWORK_BACKUP_URL",
            "Where a backup is written every day: a folder (/srv/backups) or s3://bucket/prefix?endpoint=https://host&region=name, a place of its own for each installation. Unset: no backups by themselves.",
            "",
            values.as_backup_url,
        ),
        Variable("GROUNDWORK_BACKUP_KEEP", "Backups that stay there.", "7", values.as_positive),
        Variable(
            "GROUNDWORK_BACKUP_VERIFY_DAYS",
            "How often the worker verifies the newest backup by restoring it into a scratch database: 1 each daily one, 7 one a week, 0 never. Needs the space of the whole database once more.",
            "1",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_BACKUP_KEY",
            "Comma-separated keys that encrypt backups, made as those of GROUNDWORK_CREDENTIAL_KEYS; the first encrypts, all decrypt. Keep it apart from the backups. Unset: backups aren't encrypted, and hold no keys of credentials.",
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
            "Who can register: open (anyone, with their own workspace) or invite.",
            "invite",
            values.as_choice("open", "invite"),
        ),
        Variable(
            "GROUNDWORK_EMAIL_URL",
            "SMTP server (smtp://user:password@host:587; smtps:// for TLS from the start; port 25 without TLS, unless a password is sent to another machine). Unset: mail is printed to the log.",
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
        Variable(
            "GROUNDWORK_READ_AUDIT_DAYS",
            "Days for which it is kept who read which contents; 0 keeps it forever.",
            "365",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_AUDIT_STREAM",
            "Where audit events and reads of all workspaces are sent: https://host/path (signed webhook), syslog+tls://host:port, syslog+tcp://host:port or file:///path.jsonl. Unset: nowhere.",
            "",
            values.as_stream_url,
        ),
        Variable(
            "GROUNDWORK_AUDIT_STREAM_SECRET",
            "Signs those webhooks, as Standard Webhooks says: whsec_ and 32 bytes in base64.",
            "",
            values.as_signing_secret,
        ),
        Variable(
            "GROUNDWORK_ALERTS_TO",
            "Who is told of alerts, without Prometheus: mail addresses and https:// addresses that take a JSON call with a text, as chat programs do, separated by commas. Unset: nobody.",
            "",
            values.as_alert_receivers,
        ),
        Variable(
            "GROUNDWORK_STATUS_PAGE",
            "Who may read /status: public or private (the operator alone). It tells whether pages, answers and documents work, and nothing else.",
            "private",
            values.as_choice("public", "private"),
        ),
        Variable("GROUNDWORK_LOG_FORMAT", "console or json.", "console", values.as_choice("console", "json")),
        Variable(
            "GROUNDWORK_MAX_UPLOAD_MB",
            "Largest file a person can upload, in megabytes.",
            "200",
            values.as_positive,
        ),
        Variable(
            "GROUNDWORK_RATE_PER_MINUTE",
            "REST requests per minute for each member and API key, if their workspace sets no limit; a "
            "sixth of them may come at once. 0: no limit.",
            "6000",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_SEARCHES_AT_ONCE",
            "Searches that a web server or worker process runs at once; others wait in line. 0: two for each core.",
            "0",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_TENANT_RATE_PER_MINUTE",
            "Maximum REST requests per minute for a whole workspace. 0: no limit.",
            "30000",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_IMPORT_PATHS",
            "Comma-separated folders of the server below which people may import folders, git repositories and Chroma folders: /srv/handbooks for every workspace, acme=/srv/acme for one. Unset: none.",
            "",
            values.as_import_paths,
        ),
        Variable("GROUNDWORK_IMPORT_MAX_FILES", "Maximum entries per import.", "50000", values.as_positive),
        Variable(
            "GROUNDWORK_IMPORT_MAX_MB", "Maximum megabytes per import, unpacked.", "4000", values.as_positive
        ),
        Variable(
            "GROUNDWORK_FETCH_NETWORKS",
            "Comma-separated private networks (10.2.0.0/16) that web imports, webhooks and workspace tools "
            "may still reach.",
            "",
            values.as_networks,
        ),
        Variable(
            "GROUNDWORK_PLUGIN_DIR",
            "Server folder with Python files whose tools workspaces can add: code that runs with all "
            "rights of the server. Unset: none, only installed packages.",
            "",
            values.as_optional_path,
        ),
        Variable(
            "GROUNDWORK_MCP_COMMANDS",
            "MCP servers that run as programs on this server and that every workspace can add, by name: "
            "files=/usr/local/bin/mcp-files /srv/files;git=mcp-git. They aren't run by a shell. Unset: none.",
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
            "Job queue: notify (Postgres LISTEN/NOTIFY), orm or redis.",
            "notify",
            values.as_choice("notify", "orm", "redis"),
        ),
        Variable(
            "GROUNDWORK_REDIS_URL",
            "Redis of the redis broker (redis://host:6379/0).",
            "",
            values.as_url("rediss", "unix", "redis"),
        ),
        Variable(
            "GROUNDWORK_WORKERS",
            "Worker processes. Empty: two, or one where machine or container has less than 4 GB of memory.",
            "",
            values.as_workers,
        ),
        Variable(
            "GROUNDWORK_DRAIN_SECONDS",
            "Seconds that a worker which is told to end gives answers under way to come to the end of a step (a model or tool call). What is cut is done again elsewhere. The worker may take 25 seconds more.",
            "3",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_WORKER_HEALTH_PORT",
            "Port on which the worker answers /livez, /readyz and /metrics. 0: none.",
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
            "GROUNDWORK_METRICS_TOKEN",
            "Bearer token of Prometheus for /metrics, 16 characters or more. Unset: no /metrics, but on the worker's port for programs on the same machine.",
            "",
            values.as_token,
        ),
        Variable(
            "GROUNDWORK_LOOP_SLOTS",
            "Chat runs that one worker process handles at once.",
            "64",
            values.as_positive,
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
            "Processor seconds per month for text recognition (OCR) in a workspace without its own "
            "setting; a dense page takes 5 to 10. 0: no text recognition on this server.",
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
            "Model a new conversation starts with. Unset: the one its owner used last, otherwise the first "
            "configured one, otherwise extractive.",
            "",
            str,
        ),
        Variable("GROUNDWORK_RUN_SECONDS", "Wall-clock limit for one chat run.", "300", values.as_positive),
        Variable(
            "GROUNDWORK_BATCH_LOOK_SECONDS",
            "Maximum seconds between two checks of a batch of half-price model calls; the first checks "
            "come sooner.",
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
            "GROUNDWORK_ERASURE_GRACE_DAYS",
            "Days in which an erasure of a workspace or a person can be undone, after it was asked for; also "
            "before a new or shorter retention rule starts.",
            "7",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_RETENTION_DAYS",
            "Days after which the content of ended runs (events, tool arguments and results) is removed, "
            "if a workspace has no rule of its own; 0 keeps it forever. Answers, citations, usage and "
            "audit stay.",
            "0",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_CONVERSATION_DAYS",
            "Days conversations are kept after their last question, if a workspace has no rule of its own; "
            "0 keeps them forever. Their cost and the audit trail stay.",
            "0",
            values.as_count,
        ),
        Variable(
            "GROUNDWORK_TELEMETRY",
            "OpenTelemetry spans of runs, model and tool calls: off, metadata, or content (which includes "
            "messages). Needs opentelemetry-sdk and its OTEL_ variables.",
            "off",
            values.as_choice("off", "metadata", "content"),
        ),
        Variable(
            "GROUNDWORK_COMPATIBLE_BASE_URL",
            "OpenAI-compatible server (Ollama, vLLM, llama.cpp), for example http://localhost:11434/v1.",
            "",
            values.as_url("https", "http"),
        ),
        Variable("GROUNDWORK_COMPATIBLE_API_KEY", "Key of that server, if it needs one.", "", str),
        Variable(
            "GROUNDWORK_COMPATIBLE_MODELS",
            "Comma-separated model names of that server. Unset: read from its /models.",
            "",
            values.as_list,
        ),
        Variable(
            "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS",
            "1 lets workspace admins use model servers in this server's own network.",
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
        Variable("OPENAI_ORG_ID", "OpenAI organisation for the key from the environment.", "", str),
        Variable("OPENAI_PROJECT_ID", "OpenAI project for that key.", "", str),
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
