"""What the log may say."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
import structlog

from config.logs import logging_settings
from tests.servers import ROOT


def _fail(api_key: str) -> None:
    raise RuntimeError("the provider refused")


@pytest.mark.parametrize("style", ["console", "json"])
def test_log_holds_the_traceback_and_no_variables_when_an_exception_is_logged(style: str) -> None:
    settings = logging_settings("INFO", style)["formatters"]["line"]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=settings["foreign_pre_chain"], processors=settings["processors"]
    )
    secret = "-".join(["sk", "very", "secret"])  # not in one piece in this file's own lines
    try:
        _fail(secret)
    except RuntimeError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    line = formatter.format(record)
    assert "_fail(secret)" in line
    assert "the provider refused" in line
    assert secret not in line


def test_own_loggers_keep_to_level_and_format_when_the_operator_chooses_them() -> None:
    code = """
import django, structlog
django.setup()
log = structlog.get_logger("jobs")
log.info("too_quiet")
structlog.contextvars.bind_contextvars(job=7)
try:
    secret = "-".join(["sk", "very", "secret"])
    raise RuntimeError("the provider refused")
except RuntimeError as error:
    log.warning("job_retry", kind="x", exc_info=error)
log.error("waits_with_connection", stack_info=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}",
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "GROUNDWORK_LOG_LEVEL": "WARNING",
            "GROUNDWORK_LOG_FORMAT": "json",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    line, traced = done.stderr.splitlines()
    event = json.loads(line)
    assert (event["event"], event["kind"], event["job"]) == ("job_retry", "x", 7)
    assert (event["level"], event["logger"]) == ("warning", "jobs")
    assert "the provider refused" in event["exception"]
    assert "sk-very-secret" not in line
    assert 'File "<string>"' in json.loads(traced)["stack"]
