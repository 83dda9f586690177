"""Failures of a run in OpenAI's words. Pure."""

from __future__ import annotations

from typing import Any

from budgets.ledger import EXCEEDED
from toolloop.errors import ContextTooLong, QuotaExhausted, RateLimited

# Failures for which OpenAI's clients have a name of their own: ours -> type, code.
_PROBLEMS = {
    EXCEEDED: ("insufficient_quota", EXCEEDED),
    QuotaExhausted.code: ("insufficient_quota", "insufficient_quota"),
    RateLimited.code: ("rate_limit_error", "rate_limit_exceeded"),
    ContextTooLong.code: ("invalid_request_error", "context_length_exceeded"),
}


def problem_json(code: str, message: str, *, is_retryable: bool) -> dict[str, Any]:
    """Return the ``error`` of a run that failed, in OpenAI's words where its clients know some.

    Args:
        code: our name of the failure.
        is_retryable: whether asking again may help.
    """
    kind, name = _PROBLEMS.get(code, ("server_error" if is_retryable else "invalid_request_error", code))
    return {"message": message, "type": kind, "param": None, "code": name}
