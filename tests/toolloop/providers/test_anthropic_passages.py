"""Passages that Claude cites by itself: what goes over the wire, what comes back, and what the next turn echoes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.toolloop.providers.encodings import Script, sse
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    XAI,
    Recorder,
    Wire,
    play,
    stored,
)
from toolloop.media import Media
from toolloop.messages import Citation, ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.passages import passages_read, pieces_of
from toolloop.providers.base import ResponseSchema
from toolloop.providers.profiles import profile_for

FIRST = "The duty on LED lamps is 5 % ad valorem.  It was 3 % before the reform of 2019.\nSee chapter 99."
SECOND = "Lamps of other kinds are free of duty."
CONTENT = json.dumps(
    {
        "results": [
            {
                "id": "c12",
                "document": "Tariff.pdf",
                "page": 3,
                "headings": ["Chapter 85", "Lamps"],
                "text": FIRST,
                "key_points": "duty",
            },
            {"id": "c7", "document": "Guide.md", "page": None, "headings": [], "text": SECOND},
        ],
        "note": "2 older passages left out.",
    }
)
CALL = ToolCall("toolu_1", "search_documents", {"query": "duty"})
ASKED: tuple[ModelMessage, ...] = (
    UserMessage("What is the duty?"),
    Turn("anthropic", ANTHROPIC.model, tool_calls=(CALL,), stop="tools"),
)
HISTORY: tuple[ModelMessage, ...] = (*ASKED, ToolResult("toolu_1", "search_documents", CONTENT))
FORM = ResponseSchema(
    "answer",
    {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)


def location(source: str, first: int, last: int, text: str, index: int = 0) -> dict[str, Any]:
    return {
        "type": "search_result_location",
        "source": source,
        "title": "Tariff.pdf, page 3 > Chapter 85 > Lamps",
        "search_result_index": index,
        "start_block_index": first,
        "end_block_index": last,
        "cited_text": text,
    }


def cited_stream(*blocks: dict[str, Any], step: int = 7) -> bytes:
    """Write text blocks as the API streams them: text in pieces, each citation as a delta of its own."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, block in enumerate(blocks):
        has = block.get("citations")
        begun = {**block, "text": "", **({"citations": []} if has else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        text = block["text"]
        deltas = [{"type": "text_delta", "text": text[at : at + step]} for at in range(0, len(text), step)]
        deltas += [{"type": "citations_delta", "citation": one} for one in has or ()]
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]
    return sse(*events, named=True)


BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "Let me see: "},
    {"type": "text", "text": "the duty is 5 %", "citations": [location("c12", 0, 1, pieces_of(FIRST)[0])]},
    {"type": "text", "text": ". "},
    {
        "type": "text",
        "text": "Others are free, and it was less before.\n\n",
        "citations": [
            location("c7", 0, 1, SECOND, 1),
            location("c12", 1, 2, pieces_of(FIRST)[1]),
            location("c7", 0, 1, SECOND, 1),
        ],
    },
    {"type": "text", "text": "That is all."},
]
TEXT = "Let me see: the duty is 5 % [c12]. Others are free, and it was less before. [c7][c12]\n\nThat is all."


async def body_of(wire: Wire, *messages: ModelMessage, **changes: Any) -> dict[str, Any]:
    recorder = Recorder(wire.encode(Script(text=["done"])))
    await play(wire.provider(recorder), wire.request(*messages, **changes))
    body: dict[str, Any] = recorder.body
    return body


async def test_passages_go_as_search_results_and_what_else_is_said_stays_in_the_result() -> None:
    body = await body_of(ANTHROPIC, *HISTORY)
    results = [
        {
            "type": "search_result",
            "source": "c12",
            "title": "Tariff.pdf, page 3 > Chapter 85 > Lamps",
            "content": [
                {"type": "text", "text": "The duty on LED lamps is 5 % ad valorem.  "},
                {"type": "text", "text": "It was 3 % before the reform of 2019.\nSee chapter 99."},
            ],
            "citations": {"enabled": True},
        },
        {
            "type": "search_result",
            "source": "c7",
            "title": "Guide.md",
            "content": [{"type": "text", "text": SECOND}],
            "citations": {"enabled": True},
        },
    ]
    beside = '{"c12": {"key_points": "duty"}, "note": "2 older passages left out."}'
    about = {
        "type": "search_result",
        "source": "(about)",
        "title": "About the results of search_documents",
        "content": [{"type": "text", "text": beside}],
        "citations": {"enabled": True},
    }
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [*results, about]}
    ]
    import anthropic.types  # takes a second, which every process of a run would pay at the top

    block = body["messages"][2]["content"][0]
    TypeAdapter(anthropic.types.ToolResultBlockParam).validate_python(block, strict=False)


async def test_citations_become_marks_and_the_next_turn_echoes_them_verbatim() -> None:
    recorder = Recorder(cited_stream(*BLOCKS), ANTHROPIC.encode(Script(text=["done"])))
    provider = ANTHROPIC.provider(recorder)
    events = [event async for event in provider.stream(ANTHROPIC.request(*HISTORY))]
    turn = stored(events[-1].turn)  # type: ignore[union-attr]
    assert turn.text == TEXT
    assert "".join(event.text for event in events[:-1]) == TEXT  # type: ignore[union-attr]
    first, second = "Tariff.pdf, page 3 > Chapter 85 > Lamps", pieces_of(FIRST)
    at = TEXT.index("Others")
    end = at + len("Others are free, and it was less before.")
    assert list(turn.citations) == [
        Citation(title=first, start=12, end=27, quote=second[0], passage="c12"),
        Citation(title=first, start=at, end=end, quote=SECOND, passage="c7"),
        Citation(title=first, start=at, end=end, quote=second[1], passage="c12"),
        Citation(title=first, start=at, end=end, quote=SECOND, passage="c7"),
    ]
    assert turn.native == BLOCKS
    await play(provider, ANTHROPIC.request(*HISTORY, turn, UserMessage("And now?")))
    assert recorder.body["messages"][3]["content"] == BLOCKS
    sent = recorder.requests[-1].content.decode()
    assert json.dumps(BLOCKS, ensure_ascii=False, separators=(",", ":")) in sent


@pytest.mark.parametrize("step", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It is 5 %  \n", "It is 5 % [c12]  \n"),
        ("| duty | 5 % |\n", "| duty | 5 % [c12] |\n"),
        ("It is 5 % [c12].", "It is 5 % [c12]."),
        ("```\nx = 5\n```", "```\nx = 5\n```\n\n[c12]"),
        ("   ", "   "),
    ],
)
async def test_a_mark_stands_where_it_breaks_no_markdown(text: str, shown: str, step: int) -> None:
    block = {"type": "text", "text": text, "citations": [location("c12", 0, 1, "x")]}
    recorder = Recorder(cited_stream(block, step=step))
    _, turn = await play(ANTHROPIC.provider(recorder), ANTHROPIC.request(*HISTORY))
    assert turn.text == shown


@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (" [c12].", "."),
        ("[c12] [c12] and on", " and on"),
        (" [c7].", " [c7]."),
        (" [c12, c7].", " [c12, c7]."),
        (" [x](y) [c12]", " [x](y) [c12]"),
        ("  ", "  "),
        (" [c1", " [c1"),
    ],
)
async def test_a_mark_that_the_model_writes_as_well_is_said_once(after: str, shown: str, step: int) -> None:
    cites = {"type": "text", "text": "It is 5 %", "citations": [location("c12", 0, 1, "x")]}
    stream = cited_stream(cites, {"type": "text", "text": after}, step=step)
    _, turn = await play(ANTHROPIC.provider(Recorder(stream)), ANTHROPIC.request(*HISTORY))
    assert turn.text == f"It is 5 % [c12]{shown}"
    assert turn.native == [cites, {"type": "text", "text": after}]


async def test_what_names_none_of_our_passages_makes_no_mark() -> None:
    names = [location("c999", 0, 1, "x", 9), location("(about)", 0, 1, "x", 2)]
    block = {"type": "text", "text": "It is 9 %.", "citations": names}
    _, turn = await play(ANTHROPIC.provider(Recorder(cited_stream(block))), ANTHROPIC.request(*HISTORY))
    assert turn.text == "It is 9 %."


def whole(body: dict[str, Any]) -> bool:
    """Tell whether the result was sent as the text it is."""
    found: bool = body["messages"][2]["content"][0]["content"] == CONTENT
    return found


async def test_no_citations_where_the_api_refuses_them() -> None:
    """With a schema, or beside documents, or without the fact about the model: all of them off, and plain text sent."""
    assert not whole(await body_of(ANTHROPIC, *HISTORY))
    formed = await body_of(ANTHROPIC, *HISTORY, response_schema=FORM)
    assert whole(formed)
    assert "search_result" not in json.dumps(formed)
    assert formed["output_config"]["format"]["type"] == "json_schema"
    loose = replace(FORM, strict=False)
    assert whole(await body_of(ANTHROPIC, *HISTORY, response_schema=loose))
    pdf = UserMessage("Look", parts=(Media.from_bytes(b"%PDF-1.7 /Type /Page"),))
    assert "search_result" not in json.dumps(await body_of(ANTHROPIC, *HISTORY, pdf))
    facts = replace(profile_for("anthropic", ANTHROPIC.model), cites_passages=False)
    assert whole(await body_of(ANTHROPIC, *HISTORY, profile=facts))
    assert not profile_for("anthropic", "claude-unheard-of").cites_passages


async def test_a_cited_turn_goes_back_with_marks_where_its_passages_do_not() -> None:
    turn = Turn(
        "anthropic",
        ANTHROPIC.model,
        TEXT,
        native=BLOCKS,
        account=ANTHROPIC.provider(Recorder()).account,  # type: ignore[attr-defined]
    )
    body = await body_of(ANTHROPIC, *HISTORY, turn, UserMessage("As JSON, please."), response_schema=FORM)
    echoed = body["messages"][3]["content"]
    assert "".join(block["text"] for block in echoed) == TEXT
    assert all(set(block) == {"type", "text"} for block in echoed)


@pytest.mark.parametrize("wire", [OPENAI, XAI, GOOGLE, COMPATIBLE], ids=str)
async def test_other_providers_are_sent_the_result_as_it_is(wire: Wire) -> None:
    body = await body_of(wire, *HISTORY)
    assert [text for _, text, _ in wire.results(body)] == [CONTENT]


@pytest.mark.parametrize(
    "content",
    [
        "5 %",
        '{"results": []}',
        CONTENT[:-20],
        '{"results": [{"id": "c1", "text": "  "}]}',
        '{"results": [{"id": "no id", "text": "5 %"}]}',
        '{"results": [{"id": 1, "text": "5 %"}]}',
        '{"results": [{"text": "5 %"}, 7]}',
        '{"results": [{"id": "c1", "text": "5 %"}], "note"',
        '{"rows": [{"id": "c1", "text": "5 %"}]}',
    ],
)
async def test_a_result_in_another_form_stays_text(content: str) -> None:
    assert passages_read(content) is None
    result = ToolResult("toolu_1", "search_documents", content)
    body = await body_of(ANTHROPIC, *ASKED, result)
    assert body["messages"][2]["content"][0]["content"] == content


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        "  \n\n x",
        "No. 5. U.S. law.\n\n\n- a\n- b\n" * 40,
        "。".join(["税率は五パーセント"] * 30),
        "a" * 5000,
        ". " * 3000,
    ],
)
def test_pieces_are_the_text_and_none_is_blank(text: str) -> None:
    pieces = pieces_of(text)
    assert "".join(pieces) == text
    assert all(piece.strip() for piece in pieces)
    assert len(pieces) <= 40
