"""How the processes log: one line an event on standard error, text for people or JSON for machines."""

from __future__ import annotations

import logging
from typing import Any


def logging_settings(level: str, style: str) -> dict[str, Any]:
    """Return Django's LOGGING, and send structlog there: one line an event on standard error, JSON for machines."""
    import structlog

    shared = _log_processors()
    # Our own loggers end in the standard library's too: one level, one format, one place.
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    if style == "json":
        final: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        # The default formatter prints the local variables of every frame: keys, passwords, people's text.
        plain = structlog.dev.plain_traceback
        final = [structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, exception_formatter=plain)]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final],
            }
        },
        "filters": {
            "news": {"()": "django.utils.log.CallbackFilter", "callback": _is_news},
            "one_line": {"()": "django.utils.log.CallbackFilter", "callback": _refusal_in_one_line},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.request": {"filters": ["news", "one_line"]},
            "django.security.DisallowedHost": {"filters": ["one_line"]},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
            # It tells of each request that it began and ended.
            "mcp.server": {"level": "WARNING"},
            "fido2": {"level": "WARNING"},  # else ids of passkeys
            # Addresses and headers of requests may hold secrets of a workspace's tools.
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out of failed requests what is no failure, or is told already.

    /readyz that said "not yet" (503): who asks is told, asks again, and a start is no failure. A wrong Host (400): the line
    before names it.
    """
    from django.core.exceptions import DisallowedHost

    request: Any = getattr(record, "request", None)
    status = getattr(record, "status_code", None)
    if getattr(request, "path", "") == "/readyz" and status == 503:
        return False
    if status == 400 and hasattr(request, "get_host"):
        try:
            request.get_host()
        except DisallowedHost:
            return False
    return True


def _refusal_in_one_line(record: logging.LogRecord) -> bool:
    """Leave out where a request was refused: whoever finds the server can cause that, and its one line names path or host."""
    if getattr(record, "status_code", 500) < 500:
        record.exc_info = None
    return True


def _log_processors() -> list[Any]:
    import structlog

    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        structlog.processors.StackInfoRenderer(),
    ]
