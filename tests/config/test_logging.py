"""What the log may say."""

from __future__ import annotations

import logging
import logging.config
import sys

import pytest
import structlog

from config.env import logging_settings


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
