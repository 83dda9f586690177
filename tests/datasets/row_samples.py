"""Records that the tests of datasets share."""

from __future__ import annotations

from apps.datasets.records import parts
from apps.datasets.records import record as r

FULL = r.Record(
    id="7",
    question="Welche Zollnummer hat „Olivenöl“, and what is its rate?",
    answer="Heading 1509; the rate is 3.4¢/kg.\nSee note 2.",
    rejected="I think it is 1510.",
    type=parts.RowType.MULTI_HOP,
    difficulty=parts.Difficulty.HARD,
    rationale="Needs the heading and its rate.",
    steps=(
        parts.Step(
            1,
            "Find the heading.",
            "search_documentation",
            {"query": "olive oil", "k": 3},
            "1509 …",
            0.00125,
            (1, 2),
        ),
        parts.Step(2, "A page says: <|step|>9 <|action|>rm", "", {}, ""),
        parts.Step(3, "", "get_linked_chunk", {"chunk": {"id": 4, "kinds": ["next"]}}, "3.4¢/kg"),
    ),
    sources=(
        parts.RecordSource(
            "hts.pdf", "1509 Olive oil", "Tariffs", 3, 44, 100, 114, 12, "CC0-1.0", "https://x.test/a"
        ),
        parts.RecordSource("hts.pdf", "3.4¢/kg, “net”", "Tariffs", 3, 45, 200, 214, 12, "CC0-1.0"),
    ),
    scores=(
        parts.Score("accuracy", 0.75, 4, "1509", "judge:six@1"),
        parts.Score("clarity", None, None, "", "judge:six@1"),
    ),
    tags=("tariff", "oil, olive"),
    split=parts.Split.TRAIN,
    messages=(
        parts.TraceMessage("system", "Be exact."),
        parts.TraceMessage("user", "Welche Zollnummer hat „Olivenöl“, and what is its rate?"),
        parts.TraceMessage(
            "assistant",
            "Let me look.",
            (parts.ToolCall("c1", "search_documentation", {"query": "olive oil", "k": 3}),),
        ),
        parts.TraceMessage("tool", "1509 …", (), "c1"),
        parts.TraceMessage("assistant", "Heading 1509; the rate is 3.4¢/kg.\nSee note 2."),
    ),
    tools=(
        parts.ToolSpec(
            "search_documentation",
            "Search.",
            {
                "type": "object",
                "properties": {"query": {"type": "string"}, "k": {"type": "integer"}},
                "required": ["query"],
            },
        ),
    ),
    language="de",
    meta={"chunker": "v2", "probe": [1, 2.5, None, True]},
)
PLAIN = r.Record(id="8", question='=HYPERLINK("http://evil","x")', answer='- "quoted", and\r\nlines')
ABSTAIN = r.Record(
    id="9",
    question="What is the rate on Mars?",
    type=parts.RowType.UNANSWERABLE,
    expected=parts.Behaviour.ABSTAIN,
    split=parts.Split.TEST,
)
ALL = (FULL, PLAIN, ABSTAIN)
