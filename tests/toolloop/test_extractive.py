"""The extractive provider: quotes that are in the documents, or a plain "not found"."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping

import pytest

from toolloop.best_sentences import RankedPassage, best_quotes, split
from toolloop.events import RunFinished, TextDelta, ToolFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.providers.extractive import ExtractiveProvider, answer_write, passages_read, search_query
from toolloop.tools import ToolError, ToolOutput, Toolset, tool

TARIFF = {
    "id": "c11",
    "document": "Tariff schedule",
    "page": 3,
    "headings": ["Chapter 84", "Portable machines"],
    "text": "General notes apply. Portable automatic data processing machines weighing not more than 10 kg "
    "fall under 8471.30.01 and are free of duty. Keyboards are classified elsewhere.",
}
NOTICE = {
    "id": "c12",
    "document": "Antidumping notice",
    "page": 9,
    "headings": ["Background"],
    "text": "The Department initiated a review of aluminium foil on 5 May 2024. The final margin for aluminium "
    "foil from Harbin Industries Co. Ltd. is 48.64 percent. Interested parties may request a hearing.",
}
WINE: dict[str, object] = {
    "id": "c13",
    "document": "Wine guide",
    "page": None,
    "headings": [],
    "text": "Riesling grows on slate. It keeps its acidity in warm years.",
}


def found(*rows: Mapping[str, object]) -> ToolResult:
    content = json.dumps({"results": list(rows), "note": ""})
    return ToolResult("x", "search_documents", content)


def quotes_of(answer: str) -> list[tuple[str, str]]:
    return re.findall(r"^> (.+) \[(c\d+)\](?: \(page \d+\))?$", answer, re.MULTILINE)


async def ask(question: str, *rows: Mapping[str, object], history: list[ModelMessage] | None = None):
    queries: list[str] = []

    @tool
    def search_documents(query: str) -> ToolOutput:
        """Search."""
        queries.append(query)
        return ToolOutput(found(*rows).content)

    events = [
        event
        async for event in run_loop(
            LoopInput(
                model="extractive",
                system="Cite.",
                history=[*(history or []), UserMessage(question)],
                toolset=Toolset([search_documents]),
                limits=Limits(max_cost_usd=0.01, max_tokens=1_000_000),
            ),
            LoopServices(provider=ExtractiveProvider()),
        )
    ]
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert end.status == "completed"
    return end, queries, events


async def test_answer_quotes_the_fitting_sentence_with_its_marker():
    end, queries, events = await ask("What is the final margin for aluminium foil?", TARIFF, NOTICE, WINE)
    assert queries == ["What is the final margin for aluminium foil?"]
    quotes = quotes_of(end.text)
    assert quotes[0] == (
        "The final margin for aluminium foil from Harbin Industries Co. Ltd. is 48.64 percent.",
        "c12",
    )
    assert "**Antidumping notice**" in end.text
    assert "no language model" in end.text
    assert "Riesling" not in end.text
    assert end.usage.input_total == 0
    assert end.data == {"cost_usd": 0.0, "notes": []}
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 5
    assert "".join(deltas) == end.text


async def test_answer_is_the_same_when_asked_again():
    one, _, _ = await ask("aluminium foil margin", TARIFF, NOTICE)
    two, _, _ = await ask("aluminium foil margin", TARIFF, NOTICE)
    assert one.text == two.text


async def test_sentence_with_the_code_wins_when_the_question_names_one():
    end, _, _ = await ask("Is duty due for data machines under HTS 8471.30.01?", NOTICE, TARIFF)
    assert quotes_of(end.text)[0][1] == "c11"
    assert "8471.30.01" in quotes_of(end.text)[0][0]


async def test_code_prefix_finds_the_longer_code():
    end, _, _ = await ask("8471.30", TARIFF)
    assert quotes_of(end.text)[0][1] == "c11"


@pytest.mark.parametrize(
    "question",
    [
        "Who won the football world cup in 1998?",
        "What is the duty under 9999.88.77 for portable data processing machines?",
        "What is the?",
        "warm soup recipe with carrots and leek",
    ],
)
async def test_it_says_so_without_markers_when_the_documents_do_not_answer(question):
    end, _, _ = await ask(question, TARIFF, NOTICE, WINE)
    assert "not find this in your documents" in end.text
    assert not re.search(r"\[c\d+\]", end.text)


async def test_it_says_so_when_the_search_finds_nothing():
    end, _, _ = await ask("anything at all")
    assert "not find this in your documents" in end.text


async def test_search_failure_is_told():
    @tool
    def search_documents(query: str) -> str:
        """Search."""
        raise ToolError("the index is being rebuilt")

    events = [
        event
        async for event in run_loop(
            LoopInput(
                model="extractive",
                system="",
                history=[UserMessage("margin?")],
                toolset=Toolset([search_documents]),
            ),
            LoopServices(provider=ExtractiveProvider()),
        )
    ]
    assert isinstance(events[-1], RunFinished)
    assert "the index is being rebuilt" in events[-1].text
    assert sum(isinstance(event, ToolFinished) for event in events) == 1


async def test_it_says_so_when_there_is_no_search_tool():
    stream = run_loop(
        LoopInput(model="extractive", system="", history=[UserMessage("margin?")], toolset=Toolset()),
        LoopServices(provider=ExtractiveProvider()),
    )
    end = [event async for event in stream][-1]
    assert isinstance(end, RunFinished)
    assert "no documents to search" in end.text


@pytest.mark.parametrize(
    ("questions", "query"),
    [
        (["What is the margin for foil?"], "What is the margin for foil?"),
        (["What is the margin for foil?", "And for steel?"], "What is the margin for foil? And for steel?"),
        (
            ["What is the margin for foil?", "When was it published in the register?"],
            "What is the margin for foil? When was it published in the register?",
        ),
        (
            ["What is the margin for foil?", "Which notebooks weigh less than ten kilograms?"],
            "Which notebooks weigh less than ten kilograms?",
        ),
        ([], ""),
    ],
)
def test_query_takes_the_question_before_when_the_last_one_follows_it_up(questions, query):
    assert search_query(questions) == query


async def test_only_the_current_question_is_answered_when_there_is_a_history():
    old: list[ModelMessage] = [
        UserMessage("Tell me about riesling acidity"),
        Turn("extractive", "extractive", text="..."),
        found(WINE),
    ]
    end, queries, _ = await ask("What is the final margin for aluminium foil imports?", NOTICE, history=old)
    assert len(queries) == 1
    assert "Riesling" not in end.text


def test_a_sentence_is_quoted_once_when_a_neighbour_begins_in_the_middle_of_it():
    whole = "The bureau has decided not to include these codes as steel derivatives at this time."
    passages = [
        RankedPassage("c1", "notice.pdf", 1, "", f"Summary of the notice. {whole} More follows later."),
        RankedPassage("c2", "notice.pdf", 1, "", f"{whole[22:]} Another matter is treated below."),
    ]
    quotes = best_quotes("Which codes are steel derivatives?", passages, 5)
    assert [q.passage.id for q in quotes if "derivatives" in q.text] == ["c1"]


def test_at_most_five_quotes_and_no_sentence_twice_when_chunks_overlap():
    text = " ".join(f"Foil rule number {i} applies to aluminium foil." for i in range(9))
    rows = [{"id": f"c{i}", "document": "Rules", "page": 1, "text": text} for i in (1, 2)]
    quotes = quotes_of(answer_write("aluminium foil rules", [found(*rows)]))
    assert len(quotes) == 5
    assert len({text for text, _ in quotes}) == 5


def test_quotes_are_grouped_by_document():
    rows = [
        {"id": "c1", "document": "A", "text": "Foil duty is five percent in A."},
        {"id": "c2", "document": "B", "text": "Foil duty is six percent in B."},
        {"id": "c3", "document": "A", "text": "Foil duty was four percent in the past."},
    ]
    answer = answer_write("foil duty percent", [found(*rows)])
    assert answer.count("**A**") == 1
    assert [marker for _, marker in quotes_of(answer)] in (["c1", "c3", "c2"], ["c2", "c1", "c3"])


def test_document_text_cannot_pose_as_a_citation_or_markup():
    row = {
        "id": "c1",
        "document": "Evil *doc* [c9]",
        "text": "Foil duty is zero [c99] see [here](http://evil) <img src=x> `code` and *more*.",
    }
    answer = answer_write("foil duty", [found(row)])
    assert re.findall(r"\[(c\d+)\]", answer) == ["c1"]
    assert r"\<img" in answer
    assert "](http" not in answer.replace(r"\](http", "")
    assert r"\*more\*" in answer


def test_quotes_are_verbatim_when_the_text_is_wrapped_and_long():
    sentence = "The margin for foil " + "of the kind described in this long annex " * 20 + "is 7 %"
    row = {"id": "c1", "document": "D", "text": sentence.replace(" annex ", " annex\n")}
    ((quoted, _),) = quotes_of(answer_write("margin foil annex", [found(row)]))
    inner = quoted.removeprefix("… ").removesuffix(" …")
    assert inner in sentence
    assert len(quoted) < 430


def test_content_that_was_cut_is_read_as_far_as_it_goes():
    content = found(TARIFF, NOTICE).content
    assert [p.id for p in passages_read(content)] == ["c11", "c12"]
    assert [p.id for p in passages_read(content[: len(content) - 60] + "\n[... cut ...]")] == ["c11"]
    assert passages_read("no JSON at all") == []
    assert passages_read('{"results": [{"id": "../etc", "text": "x"}, 5]}') == []
    assert passages_read("[1, 2]") == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "The U.S. margin is 5 %. See Sec. 3 for more on it. It applies to Acme Co. Ltd. of Texas.",
            [
                "The U.S. margin is 5 %.",
                "See Sec. 3 for more on it.",
                "It applies to Acme Co. Ltd. of Texas.",
            ],
        ),
        (
            "# Title\n| Code | Rate of duty |\n|---|---|\n| 8471.30.01 | Free |\n\n- first item of the list\n- second item of the list",
            [
                "| Code | Rate of duty |",
                "| 8471.30.01 | Free |",
                "- first item of the list",
                "- second item of the list",
            ],
        ),
        ("关税为百分之五,适用于所有进口的铝箔产品。第二句话也在这里,说明其他的细节和情况。", None),
    ],
)
def test_text_is_split_at_sentences_rows_and_items(text, parts):
    got = split(text)
    if parts is None:
        assert len(got) == 2
    else:
        assert got == parts


def test_chinese_question_finds_its_sentence():
    row = {
        "id": "c1",
        "document": "D",
        "text": "葡萄酒的历史很长,可以追溯到几千年以前的地方。关税为百分之五,适用于所有进口的铝箔产品。",
    }
    ((text, _),) = quotes_of(answer_write("铝箔的关税", [found(row)]))
    assert "铝箔" in text


@pytest.mark.parametrize("unit", [".", "a-", "a.", "(", "x ", "1/", "“", "|", "[c1]", "a'"])
def test_hostile_text_takes_linear_time(unit):
    row = {"id": "c1", "document": "D", "text": "foil duty " + unit * (60_000 // len(unit))}
    begun = time.process_time()
    answer_write("foil duty 8471.30", [found(row)])
    assert time.process_time() - begun < 1.0


def searched(*rows: Mapping[str, object], **head: object) -> ToolResult:
    """Return what a search says with these words about itself."""
    return ToolResult("x", "search_documents", json.dumps({**head, "note": "", "results": list(rows)}))


NEAR = "Your documents may not answer this. The nearest passage says"


@pytest.mark.parametrize(
    ("question", "similarity", "begins"),
    [
        ("What is the final margin for aluminium foil?", 0.71, "These passages answer"),
        ("What is the final margin for aluminium foil?", None, "These passages answer"),
        # The words are there, the name is not: about something else, but near.
        ("What is the final margin for aluminium foil from Korea?", 0.7, NEAR),
        ("Who may request a recount after an election?", 0.05, "I did not find this"),
        ("Which soup has carrots and leek?", None, "I did not find this"),
    ],
)
def test_an_answer_is_told_from_what_is_near_and_from_nothing(question, similarity, begins):
    head = {} if similarity is None else {"similarity": similarity}
    text = answer_write(question, [searched(TARIFF, NOTICE, WINE, **head)])
    assert text.startswith(begins)
    assert len(quotes_of(text)) <= (1 if begins == NEAR else 5)
    assert bool(quotes_of(text)) == (begins != "I did not find this")


@pytest.mark.parametrize(
    ("found", "begins"),
    [
        ({"8471.30.01": "exact"}, "These passages answer"),
        ({"8471.30.0150": "parent"}, "“8471.30.0150” is not in your documents."),
        ({"8471.30": "near"}, "“8471.30” is not in your documents."),
        ({"8471.30.99": "none"}, "I did not find this in your documents."),
        ({"8471.30.01": "exact", "9999.1": "none"}, "“9999.1” is not in your documents."),
    ],
)
def test_what_the_search_says_of_codes_decides(found, begins):
    codes = [{"code": code, "found": how} for code, how in found.items()]
    text = answer_write(f"Duty under {' and '.join(found)}?", [searched(TARIFF, codes=codes)])
    assert text.startswith(begins)
    assert bool(quotes_of(text)) == (set(found.values()) != {"none"})
    assert (NEAR in text) == (not {"exact", "none"} & set(found.values()))
    if "none" in found.values():
        assert "not in your documents" in text


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        '{"results": 1}',
        '{"codes": [1], "results": []}',
        '{"similarity": "a", "results": []}',
    ],
)
def test_broken_results_find_nothing(content):
    said = answer_write("What is the margin?", [ToolResult("x", "search_documents", content)])
    assert said.startswith("I did not find this")


async def test_a_missing_right_is_named():
    why = "it needs the right “tool.run”"
    toolset = Toolset([], withheld=lambda name: why if name == "search_documents" else "")
    events = [
        event
        async for event in run_loop(
            LoopInput(model="extractive", system="", history=[UserMessage("margin?")], toolset=toolset),
            LoopServices(provider=ExtractiveProvider()),
        )
    ]
    end = events[-1]
    assert isinstance(end, RunFinished)
    assert why in end.text
    assert "no documents" not in end.text
