"""Secrets among arguments are hidden by name and by schema; what is none stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolloop.masking import MASK, is_secret_name, masked, unmasked


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "Password",
        "userPassword",
        "api_key",
        "apiKey",
        "APIKEY",
        "X-Auth-Token",
        "token",
        "client_secret",
        "Authorization",
        "private_key",
        "access-key",
        "credentials",
        "otp",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)
    assert masked({name: "hunter2"}) == {name: MASK}


@pytest.mark.parametrize(
    "name", ["max_tokens", "page_token", "query", "key", "passenger", "keyboard", "author", "tokens"]
)
def test_plain_names(name: str) -> None:
    value = {name: "hunter2"}
    assert masked(value) is value


def test_secrets_are_hidden_wherever_they_stand() -> None:
    value = {"a": [{"login": {"user": "ann", "password": "p"}}, 3], "secret": {"deep": ["x"]}}
    clean = masked(value)
    assert clean == {"a": [{"login": {"user": "ann", "password": MASK}}, 3], "secret": MASK}
    assert value["a"][0]["login"]["password"] == "p"  # type: ignore[index]


def test_schema_says_what_is_secret() -> None:
    schema = {
        "type": "object",
        "$defs": {
            "Card": {"type": "object", "properties": {"number": {"type": "string", "writeOnly": True}}}
        },
        "properties": {
            "note": {"type": "string", "format": "password"},
            "card": {"$ref": "#/$defs/Card"},
            "cards": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Card"}, {"type": "null"}]}},
            "words": {"type": "array", "items": {"type": "string", "format": "password"}},
        },
        "additionalProperties": {"type": "string", "writeOnly": True},
    }
    value = {
        "note": "n",
        "card": {"number": "4"},
        "cards": [{"number": "5"}, None],
        "words": ["w"],
        "more": "m",
    }
    assert masked(value, schema) == {
        "note": MASK,
        "card": {"number": MASK},
        "cards": [{"number": MASK}, None],
        "words": [MASK],
        "more": MASK,
    }


def test_schema_that_refers_to_itself_ends() -> None:
    schema: dict[str, Any] = {"anyOf": [{"$ref": "#"}] * 50, "properties": {"a": {"$ref": "#"}}}
    value = {"a": {"a": {"a": "x"}}}
    assert masked(value, schema) is value


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter2", "n": 1}',
        '{"password": "hunter2", "n": ',
        '{"password": "hunter2',
        '[{"token": "hunter2"}]',
        '{"pass\\u0077ord": "hunter2"}',
    ],
)
def test_text_that_was_meant_to_be_json(text: str) -> None:
    assert "hunter2" not in masked(text)


@pytest.mark.parametrize("text", ['{"note": "Zqelda"}', '{"note": "Zqelda", "said": ', '{"note": "Zqel'])
def test_schema_counts_for_text_that_was_meant_to_be_json(text: str) -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string", "writeOnly": True}}}
    assert "Zq" not in masked(text, schema)
    assert masked('{"other": "Zqelda"', schema) == '{"other": "Zqelda"'


def test_text_without_secrets_stays_as_it_is() -> None:
    assert masked('{"a":   1}') == '{"a":   1}'
    assert masked("no json at all") == "no json at all"


def test_json_within_json_is_looked_into() -> None:
    turn = {"native": [{"arguments": '{"password": "hunter2", "n": 1}'}], "raw": '[{"token": "hunter2"'}
    assert "hunter2" not in json.dumps(masked(turn))
    bare = {"text": "{plain} [words]"}
    assert masked(bare) is bare


def test_edits_of_masked_arguments_keep_what_was_hidden() -> None:
    original = {"user": "ann", "password": "p", "rows": [{"token": "t"}, {"token": "u"}]}
    shown = json.loads(json.dumps(masked(original)))
    shown["user"] = "bob"
    assert unmasked(shown, original) == {**original, "user": "bob"}
    assert unmasked({"password": "new"}, original) == {"password": "new"}
