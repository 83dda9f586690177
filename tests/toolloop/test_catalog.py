"""A catalog of hundreds of tools: what a search finds, in which order, and what is loaded for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolloop.providers.base import ToolSpec
from toolloop.tools import Tool, ToolDefinitionError
from toolloop.tools.catalog import Catalog
from toolloop.tools.meaning import FAILED, parameter_texts, scores_joined
from toolloop.tools.ranking import VectorIndex, WordIndex, words_of
from toolloop.tools.specs import spec_compact, spec_tokens


def made(name: str, description: str, **facts: Any) -> Tool:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    return Tool(name, description, schema, lambda query="": query, **facts)


INVOICES = made("list_invoices", "List invoices of a customer.", group="billing.invoices", category="finance")
REFUND = made(
    "create_refund", "Give money back for a payment.", group="billing", category="finance", tags=("write",)
)
WEATHER = made("get_weather", "Tell the weather of a city.", category="world", tags=("read", "free"))
TICKETS = made("search_tickets", "Find support tickets by text.", group="support", tags=("read",))
TOOLS = (INVOICES, REFUND, WEATHER, TICKETS)

MEANINGS = {"money": (1.0, 0.0), "weather": (0.0, 1.0)}


class Embedding:
    """Puts texts about money on one axis and those about weather on the other."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.threads: set[int] = set()

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        self.threads.add(threading.get_ident())
        money, sky = ("invoice", "money", "payment", "reimburse"), ("weather", "umbrella")
        return [
            [float(any(w in t.lower() for w in money)), float(any(w in t.lower() for w in sky)), 0.1]
            for t in texts
        ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listOpenInvoices", ["list", "open", "invoic"]),
        ("HTTPServer_v2-get", ["http", "server", "v2", "get"]),
        ("Created companies, creating boxes", ["creat", "company", "creat", "box"]),
        ("the of", []),
        ("Größe ändern", ["größ", "ändern"]),
    ],
)
def test_words_are_split_and_stemmed(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_name_counts_more_than_description_when_words_match_both() -> None:
    catalog = Catalog([made("other", "An invoice is mentioned here."), INVOICES])
    page = catalog.search("invoice")
    assert page.names == ("list_invoices", "other")
    assert 1 >= page.hits[0].score > page.hits[1].score > 0


def test_exact_name_comes_first_when_another_tool_repeats_its_words() -> None:
    greedy = made("weather_get_weather_city", "weather weather get weather")
    page = Catalog([greedy, WEATHER]).search("get_weather")
    assert page.names[0] == "get_weather"
    assert page.hits[0].found_by == "name"


def test_beginning_of_a_word_finds_it_when_no_whole_word_does() -> None:
    assert Catalog(TOOLS).search("refu").names == ("create_refund",)
    assert Catalog(TOOLS).search("re").names == ()


def test_nothing_is_found_when_no_word_is_shared() -> None:
    page = Catalog(TOOLS).search("zebra")
    assert (page.names, page.total, page.has_more) == ((), 0, False)


def test_filters_narrow_and_groups_hold_those_below_them() -> None:
    catalog = Catalog(TOOLS)
    assert catalog.search(group="billing").names == ("list_invoices", "create_refund")
    assert catalog.search(group="bill").names == ()
    assert catalog.search(category="finance", tags=["write"]).names == ("create_refund",)
    assert catalog.search(tags=["read", "free"]).names == ("get_weather",)
    assert catalog.groups() == {"billing": 2, "billing.invoices": 1, "support": 1}
    assert catalog.categories() == {"finance": 2, "world": 1}
    assert catalog.tags() == {"free": 1, "read": 2, "write": 1}


def test_pages_cover_all_hits_once() -> None:
    catalog = Catalog(made(f"tool_{n}", "Do a thing.") for n in range(25))
    pages = [catalog.search("thing", limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [len(page.hits) for page in pages] == [10, 10, 5, 0]
    assert [page.has_more for page in pages] == [True, True, False, False]
    assert len({name for page in pages for name in page.names}) == 25
    assert catalog.search("thing", limit=-3, offset=-5).names == ()


def test_low_scores_are_left_out_when_a_least_score_is_set() -> None:
    catalog = Catalog(TOOLS)
    everything = catalog.search("find invoices of a customer")
    best = everything.hits[0].score
    assert everything.total > 1
    assert catalog.search("find invoices of a customer", min_score=best).total == 1


async def test_meaning_finds_what_words_cannot_when_an_embedder_is_there() -> None:
    catalog = Catalog(TOOLS, embedder=Embedding())
    assert catalog.search("reimburse someone").names == ()
    page = await catalog.find("reimburse someone")
    assert set(page.names) == {"list_invoices", "create_refund"}
    assert {hit.found_by for hit in page.hits} == {"meaning"}


async def test_words_follow_meaning_and_a_written_name_precedes_it() -> None:
    catalog = Catalog(TOOLS, embedder=Embedding())
    page = await catalog.find("do I need an umbrella for the tickets")
    assert [hit.found_by for hit in page.hits] == ["meaning", "words"]
    assert page.names == ("get_weather", "search_tickets")
    named = await catalog.find("list_invoices")
    assert named.names[0] == "list_invoices"
    assert named.hits[0].found_by == "name"


async def test_catalog_is_embedded_once_and_off_the_event_loop() -> None:
    embedder = Embedding()
    catalog = Catalog(TOOLS, embedder=embedder)
    await catalog.find("umbrella")
    await catalog.find("umbrella")
    assert [len(texts) for texts in embedder.asked] == [4, 1]
    assert threading.get_ident() not in embedder.threads
    catalog.add(made("late", "A late tool about weather."))
    assert "late" in (await catalog.find("umbrella")).names


async def test_async_embedder_is_awaited() -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return Embedding()(texts)

    assert (await Catalog(TOOLS, embedder=embed).find("umbrella")).names == ("get_weather",)


@pytest.mark.parametrize("answer", [RuntimeError("no model"), [[1.0]]])
async def test_words_decide_when_the_embedder_fails(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    page = await Catalog(TOOLS, embedder=embed).find("refund")
    assert page.names == ("create_refund",)
    assert page.note == FAILED
    assert "embedder failed" in caplog.text


def with_parameters(name: str, **properties: Any) -> Tool:
    return Tool(name, "Does it.", {"type": "object", "properties": properties}, lambda **_: "")


@pytest.mark.parametrize("query", ["tariffCode", "harmonized schedule", "ocean", "warehouse", "drayage"])
def test_parameters_their_descriptions_and_values_are_searched(query: str) -> None:
    shipping = with_parameters(
        "quote",
        tariffCode={"type": "string", "description": "A code of the Harmonized Schedule."},
        mode={"enum": ["air", "ocean", 3, None]},
        stops={
            "type": "array",
            "items": {"type": "object", "properties": {"warehouse_id": {"const": "drayage"}}},
        },
    )
    others = [with_parameters(f"other_{n}", colour={"description": "Any."}) for n in range(5)]
    assert Catalog([*others, shipping]).search(query).names == ("quote",)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"a": True, "b": None}},
        {"properties": {"a": {"enum": "text", "items": [1, {"properties": {"c": {}}}], "anyOf": 7}}},
        {"anyOf": [{"anyOf": [{"properties": {"a": {"description": 5}}}]}]},
    ],
)
def test_schemas_of_any_form_are_read(schema: dict[str, Any]) -> None:
    assert isinstance(parameter_texts(schema), tuple)


async def test_tools_without_a_vector_yet_are_found_by_their_words() -> None:
    def known(texts: list[str]) -> list[Any]:
        return [
            None if "ticket" in text else [1.0, 0.0, 0.1] if "money" in text.lower() else [0.0, 1.0, 0.1]
            for text in texts
        ]

    embedder = Embedding()
    catalog = Catalog(TOOLS, embedder=embedder, vectors=known)
    assert (await catalog.find("money")).names[0] == "create_refund"
    assert "search_tickets" in (await catalog.find("find support tickets")).names
    assert embedder.asked == [["money"], ["find support tickets"]]  # never the tools themselves


async def test_nothing_is_embedded_while_no_tool_has_a_vector() -> None:
    embedder = Embedding()
    catalog = Catalog(TOOLS, embedder=embedder, vectors=lambda texts: [None] * len(texts))
    assert (await catalog.find("refund")).names == ("create_refund",)
    assert embedder.asked == []


async def test_wrong_number_of_known_vectors_is_a_failure_and_no_guess() -> None:
    catalog = Catalog(TOOLS, embedder=Embedding(), vectors=lambda texts: [[1.0, 0.0, 0.0]])
    page = await catalog.find("refund")
    assert (page.names, page.note) == (("create_refund",), FAILED)


def test_joined_scores_lie_between_none_and_one_and_a_missing_vector_counts_as_its_words() -> None:
    scores = scores_joined({0: 0.4, 1: 0.2}, {0: None, 1: 0.5, 2: 0.25, 3: -1.0})
    assert scores == {0: 1.0, 1: pytest.approx(0.85), 2: pytest.approx(0.35), 3: 0.0}
    assert scores_joined({}, {0: None}) == {0: 0.0}


def test_schema_is_loaded_when_first_needed_only() -> None:
    loads = 0

    def load() -> Tool:
        nonlocal loads
        loads += 1
        return INVOICES

    catalog = Catalog()
    entry = catalog.add_lazy("list_invoices", "List invoices.", load, token_count=40)
    assert catalog.search("invoices").names == ("list_invoices",)
    assert catalog.token_count() == 40
    assert (loads, entry.is_loaded) == (0, False)
    assert catalog.get("list_invoices") is catalog.get("list_invoices") is INVOICES
    assert loads == 1


def test_definition_error_when_names_clash_or_a_loader_brings_another_tool() -> None:
    with pytest.raises(ToolDefinitionError, match="two tools"):
        Catalog([INVOICES, INVOICES])
    catalog = Catalog()
    catalog.add_lazy("x", "X.", lambda: INVOICES)
    with pytest.raises(ToolDefinitionError, match="list_invoices"):
        catalog.get("x")


def test_compact_form_keeps_what_a_call_needs() -> None:
    spec = ToolSpec(
        "t",
        "First paragraph.\n\nLong rest.",
        {
            "type": "object",
            "properties": {
                "description": {"type": "string", "description": "Named like a keyword.", "default": "x"},
                "mode": {"enum": ["a", "b"], "title": "Mode"},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}, "minItems": 1},
            },
            "required": ["mode"],
            "additionalProperties": False,
            "$defs": {"Row": {"type": "object", "description": "gone", "properties": {}}},
        },
    )
    assert spec_compact(spec) == ToolSpec(
        "t",
        "First paragraph.",
        {
            "type": "object",
            "properties": {
                "description": {"type": "string"},
                "mode": {"enum": ["a", "b"]},
                "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            },
            "required": ["mode"],
            "additionalProperties": False,
            "$defs": {"Row": {"type": "object", "properties": {}}},
        },
    )
    assert spec_tokens(spec_compact(spec)) < spec_tokens(spec)


def test_indexes_take_an_empty_catalog() -> None:
    assert WordIndex([]).scores("anything") == {}
    assert VectorIndex([]).similarities([1.0]) == []
    assert VectorIndex([[0.0, 0.0], [3.0, 4.0]]).similarities([3.0, 4.0]) == pytest.approx([0, 1])
