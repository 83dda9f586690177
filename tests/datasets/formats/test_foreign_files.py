"""Files of other programs are read, and hostile ones are refused."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from itertools import product

import pytest

from apps.datasets.formats import FORMATS, RowError
from apps.datasets.records import record as r
from basics.errors import Invalid
from tests.datasets.formats.files import read
from tests.datasets.row_samples import PLAIN
from tests.walked import each

FOREIGN = [
    (
        "openai",
        '{"messages":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":"a"}]}',
        "q",
        "a",
    ),
    (
        "sharegpt",
        '[\n{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}\n]',
        "q",
        "a",
    ),
    ("alpaca", '[{"instruction":"q","input":"i","output":"a"}]', "q\n\ni", "a"),
    ("alpaca", '{"instruction":"q","output":"a"}\n', "q", "a"),
    ("preference", '{"prompt":"q","chosen":"a","rejected":"b"}', "q", "a"),
    (
        "anthropic",
        '{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}',
        "q",
        "a",
    ),
    (
        "gemini",
        '{"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a"}]}]}',
        "q",
        "a",
    ),
    ("csv", "\ufeffquestion,answer\r\nq,a\r\n", "q", "a"),
    ("jsonl", '\ufeff{"question":"q","answer":"a"}', "q", "a"),
    ("ragas", '{"user_input":"q","retrieved_contexts":["c"],"response":"a"}', "q", "a"),
    ("promptfoo", '{"vars":{"question":"q"},"assert":[{"type":"equals","value":"a"}]}', "q", "a"),
    (
        "squad",
        json.dumps(
            {
                "data": [
                    {
                        "title": "t",
                        "paragraphs": [
                            {
                                "context": "xa",
                                "qas": [
                                    {
                                        "id": "1",
                                        "question": "q",
                                        "answers": [{"text": "a", "answer_start": 1}],
                                    }
                                ],
                            }
                        ],
                    }
                ]
            }
        ),
        "q",
        "a",
    ),
    (
        "mtrag",
        '{"task_id":"t::2","turn":2,"Multi-Turn":NaN,"answerability":["ANSWERABLE"],"contexts":[{"document_id":"d","title":"t","text":"c"}],"input":[{"speaker":"user","text":"p"},{"speaker":"agent","text":"x"},{"speaker":"user","text":"q"}],"targets":[{"speaker":"agent","text":"a"}]}',
        "q",
        "a",
    ),
    (
        "mtrag",
        '{"task_id":"t::1","answerability":["UNANSWERABLE"],"contexts":[],"input":[{"speaker":"user","text":"q"}],"targets":[{"speaker":"agent","text":"a"}]}',
        "q",
        "a",
    ),
    ("bipia", '{"context":"From: a\\nTo: b","question":"q","ideal":["a","b"]}', "q", "a"),
    ("bipia", '{"context":"c","question":"q","ideal":"unkown"}', "q", ""),
    (
        "bfcl",
        '{"id":"irrelevance_0","question":[[{"role":"user","content":"q"}]],"function":[{"name":"f","parameters":{"type":"dict","properties":{}}}]}',
        "q",
        "",
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "question", "answer"), FOREIGN, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(FOREIGN)]
)
def test_files_of_other_programs_are_read(name, content, question, answer, tmp_path):
    (row,) = read(name, content, tmp_path)
    assert not isinstance(row, RowError), row
    assert (row.question, row.answer) == (question, answer)


def test_right_calls_of_bfcl_come_with_all_that_is_allowed(tmp_path):
    question = {
        "id": "simple_0",
        "question": [[{"role": "user", "content": "Area?"}]],
        "function": [
            {
                "name": "area",
                "description": "",
                "parameters": {
                    "type": "dict",
                    "properties": {
                        "base": {"type": "float"},
                        "points": {"type": "tuple", "items": {"type": "float"}},
                    },
                },
            }
        ],
    }
    truth = {"id": "simple_0", "ground_truth": [{"area": {"base": [10, 10.0], "unit": ["", "cm"]}}]}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        lines = [
            question,
            {**question, "id": "simple_1"},
            {**question, "id": "multi_turn_0", "question": [[], []]},
        ]
        archive.writestr("data/BFCL_v4_simple_python.json", "\n".join(map(json.dumps, lines)))
        archive.writestr("data/possible_answer/BFCL_v4_simple_python.json", json.dumps(truth))
    row, missing, several = read("bfcl", out.getvalue(), tmp_path)
    (call,) = row.messages[-1].tool_calls
    assert (row.question, row.answer, call.name, call.arguments) == (
        "Area?",
        "area(base=10)",
        "area",
        {"base": 10},
    )
    assert row.meta == {"allowed_arguments": [{"base": [10, 10.0], "unit": ["", "cm"]}]}
    assert row.tools[0].parameters["type"] == "object"
    assert row.tools[0].parameters["properties"]["points"] == {"type": "array", "items": {"type": "number"}}
    assert "possible_answer" in missing.message
    assert "single-turn" in several.message


def test_turns_of_mtrag_keep_what_was_said_before(tmp_path):
    content = next(text for name, text, *_ in FOREIGN if name == "mtrag")
    (row,) = read("mtrag", content, tmp_path)
    assert [(m.role, m.content) for m in row.messages] == [
        ("user", "p"),
        ("assistant", "x"),
        ("user", "q"),
        ("assistant", "a"),
    ]
    assert [(s.document, s.quote) for s in row.sources] == [("t", "c")]
    assert row.type == "multi_turn"


def test_a_beir_set_with_documents_without_labels_is_read(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            "scifact/corpus.jsonl",
            '{"_id":"d1","title":"T","text":"one","metadata":{}}\n{"_id":"d2","title":"","text":"two","metadata":{}}\n',
        )
        archive.writestr(
            "scifact/queries.jsonl",
            '{"_id":"1","text":"q1","metadata":{}}\n{"_id":"2","text":"q2","metadata":{}}\n',
        )
        archive.writestr(
            "scifact/qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n1\td2\t0\n2\td1\t²\n2\td1\t--5\n"
        )
    (row,) = read("beir", out.getvalue(), tmp_path)
    assert (row.id, row.question, row.split) == ("1", "q1", "test")
    assert [(s.document, s.quote) for s in row.sources] == [("T", "one")]


def test_one_bad_row_does_not_lose_the_others(tmp_path):
    good = r.to_json(PLAIN)
    content = f'{good}\n{{"question": 3}}\nnot json\n\n[1]\n{"x" * 1_000_010}\n{good}'
    rows = read("jsonl", content, tmp_path)
    assert [row.row for row in rows if isinstance(row, RowError)] == [2, 3, 5, 6]
    assert [row for row in rows if not isinstance(row, RowError)] == [PLAIN, PLAIN]
    array = f'[{good}, {{"a": "]\\\\\\"}}"}}, {{"a": [1, {{}}]}}, {good}]'
    assert [isinstance(row, RowError) for row in read("jsonl", array, tmp_path)] == [False, True, True, False]


@pytest.mark.parametrize("size", [1, 2, 7])
def test_an_array_is_cut_at_its_items_wherever_blocks_end(size, monkeypatch):
    from apps.datasets.formats import lines

    monkeypatch.setattr(lines, "_BLOCK", size)
    values = [{"a": 'x\\" ]},{['}, [], "text, \\\\", 7, {"b": {"c": [1, 2]}}]
    text = json.dumps(values, indent=1).encode()
    assert [
        json.loads(item) for _, item in lines.items(io.BytesIO(text)) if isinstance(item, bytes)
    ] == values
    assert list(lines.items(io.BytesIO(b" [ ] "))) == []
    with pytest.raises(Invalid):
        list(lines.items(io.BytesIO(text[:-2])))


@each(
    "content, name",
    product(
        [
            b"",
            b"\x00\xff\xfe",
            b"[" * 5000,
            b'{"messages": 3}',
            b"[{]",
            b"PK\x03\x04 torn",
            b"PAR1xPAR1",
            b'question\n"open',
            "question\n\ud800".encode("utf-8", "surrogatepass"),
            b"null",
            b'{"data":[3]}',
        ],
        list(FORMATS),
    ),
)
def test_nonsense_is_refused_in_words(name, content, tmp_path):
    """A refusal of the file or of each of its rows; never another exception, and never a row."""
    rows: list[object] = []
    with suppress(Invalid):
        rows = read(name, content, tmp_path)
    assert all(isinstance(row, RowError) and row.message for row in rows)


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    from apps.datasets.formats import archive

    monkeypatch.setattr(archive, "MAX_MEMBER", 10_000)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("corpus.jsonl", b" " * 1_000_000)
        bomb.writestr("queries.jsonl", b"")
    with pytest.raises(Invalid) as refused:
        read("beir", out.getvalue(), tmp_path)
    assert refused.value.code == "archive_too_large"
