"""From a signature and a docstring to what the model sees; mistakes are errors at definition."""

from __future__ import annotations

import enum
import re
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pydantic
import pytest

from tests.toolloop.helpers import converse
from toolloop.errors import ConfigurationError
from toolloop.providers.scripted import call, calls, says
from toolloop.tools import Tool, ToolContext, ToolDefinitionError, Toolset, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: Annotated[int, "to the right"]
    y: int
    label: NotRequired[str]


class Address(pydantic.BaseModel):
    street: str = pydantic.Field(description="with number")
    zip: str = pydantic.Field(pattern=r"^\d{5}$")


class Person(pydantic.BaseModel):
    name: str
    homes: list[Address] = []


def properties(made: Tool) -> dict[str, Any]:
    found = made.parameters["properties"]
    assert isinstance(found, dict)
    return found


def test_schema_follows_the_hints():
    @tool
    def everything(
        text: str,
        number: int,
        share: float,
        flag: bool,
        names: list[str],
        table: dict[str, int],
        mode: Literal["fast", "slow"],
        colour: Colour,
        point: Point,
        anything: Any,
        pair: tuple[int, str],
        tags: set[str],
        maybe: Optional[int] = None,  # noqa: UP045 - the old spelling must work as well
        either: int | str = 3,
        noted: Annotated[str, "what it is for"] = "x",
    ) -> str:
        """Take everything."""
        return ""

    got = properties(everything)
    assert got["text"] == {"type": "string"}
    assert got["number"] == {"type": "integer"}
    assert got["share"] == {"type": "number"}
    assert got["flag"] == {"type": "boolean"}
    assert got["names"] == {"type": "array", "items": {"type": "string"}}
    assert got["table"] == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert got["mode"] == {"type": "string", "enum": ["fast", "slow"]}
    assert got["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert got["point"] == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "to the right"},
            "y": {"type": "integer"},
            "label": {"type": "string"},
        },
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    assert got["anything"] == {}
    assert got["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert got["tags"]["uniqueItems"] is True
    assert got["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert got["either"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert got["noted"] == {"type": "string", "description": "what it is for", "default": "x"}
    assert everything.parameters["required"] == list(got)[:12]
    assert everything.parameters["additionalProperties"] is False


async def test_function_gets_the_types_it_asked_for():
    seen: dict[str, Any] = {}

    @tool
    def take(
        colour: Colour,
        person: Person,
        people: list[Person],
        count: int,
        tags: set[str],
        limit: Annotated[int, pydantic.Field(ge=1, le=10), "how many"] = 3,
        friend: Person | None = None,
    ) -> str:
        """Take them."""
        seen.update(locals())
        return "ok"

    person: dict[str, Any] = {"name": "Ann", "homes": [{"street": "A 1", "zip": "12345"}]}
    await converse(
        [
            calls(
                call(
                    "take",
                    colour="red",
                    person=person,
                    people=[person],
                    count=5.0,
                    tags=["a", "b"],
                    friend=person,
                )
            ),
            says("ok", expect="ok"),
        ],
        take,
    )
    assert seen["colour"] is Colour.RED
    assert seen["person"] == Person(**person)
    assert seen["people"] == [Person(**person)]
    assert seen["friend"] == Person(**person)
    assert (seen["count"], type(seen["count"])) == (5, int)
    assert seen["tags"] == {"a", "b"}
    assert seen["limit"] == 3


async def test_pydantic_constraints_reach_model_and_validation():
    @tool
    def send(to: Address, copies: Annotated[int, pydantic.Field(ge=1)] = 1) -> str:
        """Send."""
        return "sent"

    assert properties(send)["to"]["properties"]["street"]["description"] == "with number"
    assert properties(send)["copies"]["minimum"] == 1
    dialogue = await converse(
        [
            calls(
                call("send", to={"street": "A", "zip": "x"}),
                call("send", to={"street": "A", "zip": "12345"}, copies=0),
            ),
            says("ok"),
        ],
        send,
    )
    bad_zip, bad_copies = dialogue.told()
    assert "to.zip" in bad_zip.content
    assert "copies: must be at least 1" in bad_copies.content


async def test_rules_that_no_schema_states_are_told_as_argument_errors():
    class Even(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

    def halve(even: Even) -> int:
        """Halve."""
        return even.n // 2

    halve.__annotations__["even"] = Even
    dialogue = await converse(
        [calls(call("halve", even={"n": 3})), says("ok", expect="must be even")], tool(halve)
    )
    assert dialogue.told()[0].error_code == "invalid_arguments"


def test_nested_models_share_their_definitions():
    @tool
    def meet(one: Person, two: Person) -> str:
        """Meet."""
        return ""

    assert set(meet.parameters["$defs"]) == {"Address"}
    assert properties(meet)["one"]["properties"]["homes"]["items"] == {"$ref": "#/$defs/Address"}


STYLED = {
    "google": """Search the documents.

    Use it before you answer.

    Args:
        query (str): what to look for,
            in plain words: any language.
        limit: most results.

    Returns:
        JSON of no interest to a model.
    """,
    "numpy": """Search the documents.

    Use it before you answer.

    Parameters
    ----------
    query : str
        what to look for,
        in plain words: any language.
    limit : int, optional
        most results.

    Returns
    -------
    str
        JSON of no interest to a model.
    """,
    "sphinx": """Search the documents.

    Use it before you answer.

    :param query: what to look for,
        in plain words: any language.
    :type query: str
    :param int limit: most results.
    :returns: JSON of no interest to a model.
    :rtype: str
    """,
}


def _search(query: str, limit: int = 5) -> str:
    return f"{query} {limit}"


def _documented(text: str) -> Any:
    def search(query: str, limit: int = 5) -> str:
        return _search(query, limit)

    search.__doc__ = text
    return search


@pytest.mark.parametrize("style", STYLED)
def test_every_common_style_of_docstring_gives_the_same_tool(style: str):
    made = tool(_documented(STYLED[style]))
    assert made.description == "Search the documents.\n\nUse it before you answer."
    assert properties(made) == {
        "query": {"type": "string", "description": "what to look for, in plain words: any language."},
        "limit": {"type": "integer", "default": 5, "description": "most results."},
    }


@pytest.mark.parametrize("style", STYLED)
def test_docstring_of_every_style_must_fit_the_signature(style: str):
    with pytest.raises(ToolDefinitionError, match="top, which isn't a parameter"):
        tool(_documented(STYLED[style].replace("limit", "top")))
    lacking = re.sub(r"\n *(?::param int )?limit.*(?:\n +most results\.)?", "", STYLED[style])
    assert "limit" not in lacking
    with pytest.raises(ToolDefinitionError, match="leave out limit"):
        tool(_documented(lacking))


def test_descriptions_come_from_the_docstring():
    @tool
    def search(query: str, limit: int = 5, *, ctx: ToolContext) -> str:
        """Search the documents.

        Use it before you answer.

        Args:
            query: what to look for,
                in plain words: any language.
            limit (int, optional): most results.
            ctx: not for the model.

        Returns:
            JSON of no interest to a model.

        Raises:
            ToolError: sometimes.
        """
        return ""

    assert search.name == "search"
    assert search.description == "Search the documents.\n\nUse it before you answer."
    assert properties(search) == {
        "query": {"type": "string", "description": "what to look for, in plain words: any language."},
        "limit": {"type": "integer", "default": 5, "description": "most results."},
    }
    assert search.parameters["required"] == ["query"]
    assert search.context_parameter == "ctx"


def documented(docstring: str) -> Any:
    def found(query: str, limit: int = 5) -> str:
        return ""

    found.__doc__ = docstring
    return found


@pytest.mark.parametrize(
    ("docstring", "message"),
    [
        (None, "no description"),
        ("Search.\n\nArgs:\n    query: a\n    limit: b\n    colour: c", "describes colour"),
        ("Search.\n\nArgs:\n    query: a", "leave out limit"),
        ("Search.\n\nArgs:\n    query (int): a\n    limit: b", "says int"),
        ("Search.\n\nArgs:\n    query (str, optional): a\n    limit: b", "says optional"),
        ("Search.\n\nArgs:\n    query is what you want\n    limit: b", "isn't 'name: text'"),
    ],
)
def test_definition_is_refused_when_docstring_and_signature_differ(docstring, message):
    with pytest.raises(ToolDefinitionError, match=message):
        tool(documented(docstring))


def no_hint(a) -> str:
    """Lack a hint."""
    return ""


def star(*args: int) -> str:
    """Take any number."""
    return ""


def numbered(a: dict[int, str]) -> str:
    """Use keys JSON does not have."""
    return ""


def opaque(a: Tool) -> str:
    """Take what JSON cannot say."""
    return ""


def missing(a: NowhereDefined) -> str:  # type: ignore[name-defined]  # noqa: F821
    """Name a type that is not there."""
    return ""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_hint, "'a': has no type hint"),
        (star, r"\*args"),
        (numbered, "JSON keys are strings"),
        (opaque, "Tool has no JSON form"),
        (missing, "NowhereDefined"),
    ],
)
def test_definition_is_refused_when_a_model_could_not_fill_it(function, message):
    with pytest.raises(ToolDefinitionError, match=message):
        tool(function)


def test_definition_is_refused_when_its_facts_are_wrong():
    async def work() -> str:
        """Work."""
        return ""

    with pytest.raises(ToolDefinitionError, match="marked blocking"):
        tool(blocking=True)(work)
    with pytest.raises(ToolDefinitionError, match="letters, digits"):
        tool(name="not a name")(work)
    with pytest.raises(ToolDefinitionError, match="timeout_s"):
        tool(timeout_s=0)(work)
    with pytest.raises(ToolDefinitionError, match="type object"):
        Tool("x", "d", {"type": "string"}, work)
    with pytest.raises(ConfigurationError, match="two tools"):
        Toolset([tool(work), tool(work)])


def test_context_parameter_is_found_when_a_tool_is_built_by_hand():
    async def look(ctx: ToolContext, q: str) -> str:
        return q

    made = Tool("look", "Look.", {"type": "object", "properties": {"q": {}}}, look)
    assert made.context_parameter == "ctx"


def test_side_effects_make_a_tool_not_idempotent_unless_it_says_so():
    def pay() -> str:
        """Pay."""
        return ""

    assert tool(pay).idempotent
    assert not tool(side_effects=True)(pay).idempotent
    assert tool(side_effects=True, idempotent=True)(pay).idempotent


def test_toolset_filters_and_keeps_its_order():
    def make(name: str) -> Tool:
        return Tool(name, "d", {"type": "object", "properties": {}}, lambda: "")

    toolset = Toolset(make(name) for name in "cab")
    assert [spec.name for spec in toolset.specs()] == ["c", "a", "b"]
    assert toolset.filtered(lambda t: t.name != "a").names() == ("c", "b")
    assert toolset.get("z") is None
    assert "a" in toolset
    assert len(toolset) == 3
