"""Error text and classification where no SDK is needed."""

from __future__ import annotations

import json

import httpx2
import pytest

from toolloop import errors
from toolloop.providers._failures import classify, normalised_errors, retry_after, scrub


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abc***********wxyz.",
        "key AIzaSyA-1234567890abcdefghij is wrong",
        "xai-0123456789abcdef",
        "Authorization: Bearer eyJhbGciOi.x.y",
        "https://host/v1?key=abcdef123&alt=sse",
        "secret-of-another-form",
    ],
)
def test_keys_are_removed_whatever_their_form(text: str) -> None:
    clean = scrub(text, "secret-of-another-form")
    assert "***" in clean
    for part in ("abc***********wxyz", "AIzaSy", "0123456789", "eyJ", "abcdef123", "another-form"):
        assert part not in clean


def test_ordinary_words_are_left_alone() -> None:
    text = "The task-force asked for disk-based risk-adjusted keys?key of bearers"
    assert scrub(text) == text


def test_long_texts_are_cut() -> None:
    assert len(scrub("x" * 10_000)) == 500


def test_message_is_never_empty() -> None:
    assert classify("", status=418).message


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (2000000) exceeds the maximum number of tokens allowed",
        "the request exceeds the available context size",
        "Your input exceeds the context window of this model",
    ],
)
def test_context_is_recognised_by_its_message(message: str) -> None:
    assert isinstance(classify(message, status=400), errors.ContextTooLong)


def test_message_about_context_does_not_hide_a_server_error() -> None:
    error = classify("lost the context window", status=503)
    assert isinstance(error, errors.ProviderUnavailable)


def test_graver_word_counts_when_two_are_given() -> None:
    error = classify("m", words=("rate_limit_exceeded", "insufficient_quota"), status=429)
    assert isinstance(error, errors.QuotaExhausted)
    assert not error.retryable


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "", "x"])
def test_nonsense_waits_are_no_waits(value: str) -> None:
    assert retry_after({"retry-after": value}) is None


def test_our_own_bugs_pass_through() -> None:
    with pytest.raises(RuntimeError, match="loop is closed"), normalised_errors("openai", "k"):
        raise RuntimeError("Event loop is closed")


@pytest.mark.parametrize(
    ("exc", "kind"),
    [
        (httpx2.ReadTimeout("m"), errors.ProviderUnavailable),
        (httpx2.UnsupportedProtocol("m"), errors.BadRequest),
        (httpx2.StreamClosed(), errors.ProviderUnavailable),
        (json.JSONDecodeError("m", "doc", 0), errors.MalformedResponse),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_raw_errors_get_a_kind_and_no_chain(exc: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught, normalised_errors("google", "k"):
        raise exc
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None
