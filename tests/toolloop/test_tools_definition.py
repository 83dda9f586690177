"""The compact docstring form, parameters the model never sees, and what a catalog is told about a tool."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import pytest

from tests.toolloop.helpers import converse
from toolloop.providers.scripted import call, calls, says
from toolloop.tools import FromContext, ToolDefinitionError, tool


def test_compact_docstring_describes_the_parameters() -> None:
    @tool
    def stock(
        sku: str,
        sites: list[str],
        limit: Optional[int] = None,  # noqa: UP045 - the old spelling must work as well
        mode: Literal["a", "b"] = "a",
    ) -> str:
        """Look up the stock.

        For warehouses only.
        ---
        str sku: article number: with the dash
        list[str] sites: where to look,
          in this order
        int | None limit: how many
        Literal mode: how
        """
        return sku

    assert stock.description == "Look up the stock.\n\nFor warehouses only."
    described = {n: s.get("description") for n, s in stock.parameters["properties"].items()}
    assert described == {
        "sku": "article number: with the dash",
        "sites": "where to look, in this order",
        "limit": "how many",
        "mode": "how",
    }


def wrong_type(a: int) -> str:
    """Do.
    ---
    str a: text
    """
    return ""


def unknown_type(a: int) -> str:
    """Do.
    ---
    strng a: text
    """
    return ""


def unknown_name(a: int) -> str:
    """Do.
    ---
    int a: text
    int b: text
    """
    return ""


def left_out(a: int, b: int) -> str:
    """Do.
    ---
    int a: text
    """
    return ""


def unreadable(a: int) -> str:
    """Do.
    ---
    a: text
    """
    return ""


def optional_but_plain(a: int) -> str:
    """Do.

    Args:
        a (list[int]): numbers.
    """
    return ""


@pytest.mark.parametrize(
    ("function", "says_what"),
    [
        (wrong_type, "docstring says str"),
        (unknown_type, "docstring says strng"),
        (unknown_name, "describes b"),
        (left_out, "leave out b"),
        (unreadable, "isn't 'name: text'"),
        (optional_but_plain, "docstring says list"),
    ],
)
def test_definition_fails_when_docstring_and_signature_differ(function: Any, says_what: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says_what):
        tool(function)


def test_rule_in_a_google_docstring_stays_part_of_the_description() -> None:
    @tool
    def f(a: int) -> str:
        """Do.

        ---
        A note below a rule.

        Args:
            a: number.
        """
        return ""

    assert "A note below a rule." in f.description
    assert f.parameters["properties"]["a"]["description"] == "number."


@tool(excluded=("retries",))
def whoami(greeting: str, tenant: Annotated[str, FromContext("tenant_slug")], retries: int = 2) -> str:
    """Greet the tenant.

    Args:
        greeting: first word.
        tenant: filled in.
    """
    return f"{greeting} {tenant} {retries}"


def test_hidden_parameters_are_not_in_the_schema() -> None:
    assert list(whoami.parameters["properties"]) == ["greeting"]
    assert dict(whoami.injected) == {"tenant": "tenant_slug", "retries": "retries"}


async def test_hidden_parameters_come_from_the_context_or_the_default() -> None:
    script = [calls(call("whoami", greeting="Hi")), says("done")]
    dialogue = await converse(script, whoami, context={"tenant_slug": "acme"})
    assert dialogue.told()[-1].content == "Hi acme 2"
    dialogue = await converse(script, whoami, context={"tenant_slug": "acme", "retries": 5})
    assert dialogue.told()[-1].content == "Hi acme 5"


async def test_model_cannot_set_a_hidden_parameter() -> None:
    script = [calls(call("whoami", greeting="Hi", tenant="other", retries=9)), says("done")]
    dialogue = await converse(script, whoami, context={"tenant_slug": "acme"})
    told = dialogue.told()[-1]
    assert told.error_code == "invalid_arguments"
    assert "other" not in told.content.replace("'other'", "")


async def test_model_cannot_set_a_hidden_parameter_when_the_schema_is_open() -> None:
    from dataclasses import replace

    open_tool = replace(whoami, parameters={"type": "object", "properties": {}})
    script = [calls(call("whoami", greeting="Hi", retries=9)), says("done")]
    dialogue = await converse(script, open_tool, context={"tenant_slug": "acme"})
    assert dialogue.told()[-1].error_code == "invalid_arguments"


async def test_application_error_when_the_context_lacks_a_needed_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = [calls(call("whoami", greeting="Hi")), says("done")]
    dialogue = await converse(script, whoami)
    told = dialogue.told()[-1]
    assert told.error_code == "exception"
    assert told.payload["severity"] == "fatal"
    assert "tenant_slug" in caplog.text


def test_definition_fails_when_facts_make_no_sense() -> None:
    def f(a: int) -> str:
        """Do."""
        return ""

    with pytest.raises(ToolDefinitionError, match="excluded b"):
        tool(excluded=("b",))(f)
    with pytest.raises(ToolDefinitionError, match="joined by dots"):
        tool(group="a..b")(f)
