"""Every format: what it writes comes back, damage is found, foreign files are read, hostile ones are refused."""

from __future__ import annotations

import gc
import io
import json
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace

import pytest
import yaml
from pydantic import TypeAdapter

from apps.datasets.formats import FORMATS, Card, RowError, format_get, parquet, validate
from apps.datasets.formats.base import EXAMPLES
from apps.datasets.records import record as r
from apps.datasets.records.facts import facts_of
from basics.errors import Invalid
from tests.datasets.row_samples import ALL, FULL, PLAIN

CARD = Card(
    "Tariffs | 2026",
    "3",
    "Questions about tariffs.",
    "ab" * 32,
    3,
    {"CC0-1.0": 2, "": 1},
    {"train": 1, "": 1, "test": 1},
    {"multi_hop": 1, "": 1},
    {"de": 1, "": 2},
    statistics={
        "lengths": {"answer": [1, 2, 30, 400, 5_000]},
        "scores": {"accuracy": {"mean": 0.75, "levels": [0, 0, 0, 1, 0], "unscored": 2}},
        "duplicates": {"checked_at": "2026-11-22T10:00:00+00:00", "counts": {"near": 3}},
    },
)
EXPORTS = [name for name, form in FORMATS.items() if form.is_export]
PARALLEL = replace(
    FULL,
    id="10",
    messages=(
        FULL.messages[1],
        r.TraceMessage("assistant", "", (r.ToolCall("a", "x", {}), r.ToolCall("b", "y", {"n": [1]}))),
        r.TraceMessage("tool", "one", (), "a"),
        r.TraceMessage("tool", "two", (), "b"),
        FULL.messages[4],
    ),
)
RETRIEVAL = r.Record(id="11", question="Where?", sources=FULL.sources[:1], split=r.Split.TEST)
RECORDS = (*ALL, PARALLEL, RETRIEVAL)


def written(form, records, tmp_path):
    path = tmp_path / f"export{form.suffix}"
    path.write_bytes(b"".join(form.write(lambda: iter(records), CARD)))
    return path


def rows_of(name, records, tmp_path):
    found = FORMATS[name].read(written(FORMATS[name], records, tmp_path))
    return [row for row in found if isinstance(row, r.Record)]


def read(name, content, tmp_path):
    path = tmp_path / "import"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(FORMATS[name].read(path))


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("records", [RECORDS, ()], ids=["rows", "none"])
def test_an_export_comes_back(name, records, tmp_path):
    form = format_get(name)
    path = written(form, records, tmp_path)
    report = validate(form, path, lambda: iter(records))
    assert report.problems == ()
    assert report.is_good
    assert report.rows + report.left_out == len(records)


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "huggingface"])
def test_forms_of_everything_lose_nothing(name, tmp_path):
    found = rows_of(name, RECORDS, tmp_path)
    assert {row.id: row for row in found} == {row.id: row for row in RECORDS}


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_chat_forms_keep_the_trace(name, tmp_path):
    found = rows_of(name, [FULL, PARALLEL], tmp_path)
    assert [row.messages for row in found] == [FULL.messages, PARALLEL.messages]
    assert found[0].tools == FULL.tools


def test_what_a_format_has_no_place_for_is_counted(tmp_path):
    form = FORMATS["preference"]
    report = validate(form, written(form, RECORDS, tmp_path), lambda: iter(RECORDS))
    assert (report.rows, report.left_out) == (2, 3)


@pytest.mark.parametrize("name", EXPORTS)
def test_a_lost_or_changed_row_is_found(name, tmp_path):
    form = FORMATS[name]
    other = replace(FULL, question="Another question?", messages=())
    path = written(form, [FULL], tmp_path)
    assert validate(form, path, lambda: iter([other])).failed == 1
    assert validate(form, path, lambda: iter([FULL, FULL])).failed == 1
    assert validate(form, path, lambda: iter([])).failed == 1
    many = [replace(other, id=str(n)) for n in range(EXAMPLES + 5)]
    assert len(validate(form, path, lambda: iter(many)).problems) == EXAMPLES


def test_openai_lines_are_what_the_openai_package_sends(tmp_path):
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

    messages = TypeAdapter(list[ChatCompletionMessageParam])
    tools = TypeAdapter(list[ChatCompletionToolParam])
    lines = written(FORMATS["openai"], RECORDS, tmp_path).read_text().splitlines()
    assert len(lines) == 3
    for line in map(json.loads, lines):
        messages.validate_python(line["messages"])
        tools.validate_python(line.get("tools", []))
        for message in line["messages"]:
            for call in message.get("tool_calls", ()):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_anthropic_and_gemini_lines_are_what_their_packages_send(tmp_path):
    from anthropic.types import MessageParam, ToolParam
    from google.genai.types import Content, Tool

    for line in written(FORMATS["anthropic"], RECORDS, tmp_path).read_text().splitlines():
        values = json.loads(line)
        TypeAdapter(list[MessageParam]).validate_python(values["messages"])
        TypeAdapter(list[ToolParam]).validate_python(values.get("tools", []))
        assert all(
            a["role"] != b["role"] for a, b in zip(values["messages"], values["messages"][1:], strict=False)
        )
    for line in written(FORMATS["gemini"], RECORDS, tmp_path).read_text().splitlines():
        values = json.loads(line)
        for content in values["contents"]:
            Content.model_validate(content)
        for tool in values.get("tools", []):
            Tool.model_validate(tool)


def test_the_hugging_face_folder_loads_in_its_library(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "folder"
    with zipfile.ZipFile(written(FORMATS["huggingface"], RECORDS, tmp_path)) as archive:
        archive.extractall(folder)
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in loaded.items()} == {"train": 2, "unsplit": 1, "test": 2}
    row = loaded["train"][0]
    assert row["sources"][0]["quote"] == FULL.sources[0].quote
    assert json.loads(row["steps"][0]["input"]) == FULL.steps[0].input


def test_the_card_names_the_licences(tmp_path):
    with zipfile.ZipFile(written(FORMATS["huggingface"], RECORDS, tmp_path)) as archive:
        text = archive.read("README.md").decode()
    head = yaml.safe_load(text.split("---")[1])
    assert head["license"] == "other"
    assert head["pretty_name"] == "Tariffs | 2026"
    assert [f["split"] for f in head["configs"][0]["data_files"]] == ["test", "train", "unsplit"]
    assert "| CC0-1.0 | 2 |" in text
    assert "| Answer | 1 | 2 | 30 | 400 | 5,000 |" in text
    assert "| accuracy | 0.75 | 0 | 0 | 0 | 1 | 0 | 2 |" in text
    assert "Found on 2026-11-22: 3 near." in text
    assert "| unknown | 1 |" in text


def test_beir_files_are_what_its_loader_reads(tmp_path):
    """The loader: lines with ``_id`` and ``text``, then tab-separated labels under a header."""
    with zipfile.ZipFile(written(FORMATS["beir"], RECORDS, tmp_path)) as archive:
        corpus = {d["_id"]: d for d in map(json.loads, archive.read("corpus.jsonl").splitlines())}
        queries = {q["_id"] for q in map(json.loads, archive.read("queries.jsonl").splitlines())}
        labels = [line.split("\t") for line in archive.read("qrels/train.tsv").decode().splitlines()]
    assert labels[0] == ["query-id", "corpus-id", "score"]
    assert len(corpus) == 2
    assert {label[0] for label in labels[1:]} <= queries == {"7", "10", "11"}
    assert {label[1] for label in labels[1:]} == set(corpus)


def test_equal_rows_give_equal_bytes(tmp_path):
    for name in EXPORTS:
        first = written(FORMATS[name], RECORDS, tmp_path).read_bytes()
        assert written(FORMATS[name], RECORDS, tmp_path).read_bytes() == first, name


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_holds_few_rows_at_a_time(name, tmp_path, monkeypatch):
    """Written and read back, four times the rows need not one more piece of memory for each of them."""
    monkeypatch.setattr(parquet, "BATCH", 50)
    form, path = FORMATS[name], tmp_path / "export"

    def held(count):
        most = 0

        def rows():
            nonlocal most
            for n in range(count):  # long texts: pydantic keeps up to 16,384 short ones
                source = replace(FULL.sources[0], quote=f"Passage {n:080}.", start=n, end=n + 9)
                yield replace(
                    FULL, id=f"{n:080}", question=f"Question {n:080}?", sources=(source,), messages=()
                )
                if n % 10 == 9:  # at the same places of every batch
                    gc.collect()
                    most = max(most, sys.getallocatedblocks())

        with path.open("wb") as file:
            file.writelines(form.write(rows, CARD))
        assert validate(form, path, rows).rows == count
        return most

    gc.collect()
    gc.freeze()  # all that is loaded and that other tests have left: not to be looked through at each row
    try:
        held(60)  # what is loaded once
        gc.collect()
        gc.freeze()
        few, many = held(60), held(160)
    finally:
        gc.unfreeze()
    assert many - few < 100


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


@pytest.mark.parametrize("name", list(FORMATS))
@pytest.mark.parametrize(
    "content",
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
    ids=[
        "empty",
        "binary",
        "deep",
        "shape",
        "brackets",
        "zip",
        "parquet",
        "csv",
        "surrogate",
        "null",
        "data",
    ],
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


def test_a_formula_of_a_row_is_no_formula_in_a_spreadsheet(tmp_path):
    text = written(FORMATS["csv"], [PLAIN], tmp_path).read_text()
    assert "\"'=HYPERLINK" in text
    assert ",=" not in text


MADE = {
    "question": "What is the rate?",
    "answer": "Free.",
    "timestamp": "2026-11-23T10:00:00+00:00",
    "iterations": 4,
    "is_complete": False,
    "source_chunk_id": "chunk-17",
}


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "huggingface"])
def test_rows_carry_their_making_and_bring_it_back(name, tmp_path):
    (row,) = read("jsonl", json.dumps(MADE), tmp_path)
    assert (row.timestamp, facts_of(row)) == (
        MADE["timestamp"],
        {"iterations": 4, "is_complete": False, "source_chunk_id": "chunk-17"},
    )
    back = {found.question: found for found in rows_of(name, [row, FULL], tmp_path)}
    assert back == {row.question: row, FULL.question: FULL}
    (line,) = FORMATS["jsonl"].write(lambda: iter([row]), CARD)
    assert MADE.items() <= json.loads(line).items()
    assert json.loads(line)["meta"] == {}


def test_facts_follow_from_the_record_where_nothing_else_is_said():
    assert facts_of(FULL) == {"iterations": 3, "is_complete": True, "source_chunk_id": "44"}
    unanswerable = r.Record(question="Who?", expected=r.Behaviour.ABSTAIN)
    assert facts_of(unanswerable) == {"iterations": 0, "is_complete": True, "source_chunk_id": ""}
    later = replace(FULL, timestamp="2026-01-01T00:00:00Z")
    assert later.content_hash == FULL.content_hash


def test_an_object_holds_several_questions_about_one_passage(tmp_path):
    asked = [{"question": "A?", "answer": "a"}, {"question": "B?", "answer": "b", "iterations": 2}]
    lines = [
        {"source_chunk_id": 9, "timestamp": "2026-11-23", "language": "en", "questions": asked},
        {"question": "C?", "answer": 'it says "questions"'},
        {"source_chunk_id": 9, "questions": []},
        {"source_chunk_id": 9, "questions": ["A?"]},
        {"questions": [{"question": "", "answer": "x"}, {"question": "D?", "answer": "d"}]},
    ]
    text = "\n".join(map(json.dumps, lines))
    found = read("jsonl", text, tmp_path)
    rows = [row for row in found if isinstance(row, r.Record)]
    assert [row.question for row in rows] == ["A?", "B?", "C?", "D?"]
    assert [facts_of(row)["source_chunk_id"] for row in rows] == ["9", "9", "", ""]
    assert (rows[1].language, facts_of(rows[1])["iterations"]) == ("en", 2)
    assert [row.row for row in found if isinstance(row, RowError)] == [3, 4, 5]


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": -1},
        {"iterations": True},
        {"iterations": "4"},
        {"is_complete": "yes"},
        {"source_chunk_id": ["a"]},
        {"timestamp": "yesterday"},
        {"timestamp": 5},
    ],
)
def test_a_wrong_fact_is_named(wrong, tmp_path):
    (error,) = read("jsonl", json.dumps({**MADE, **wrong}), tmp_path)
    assert isinstance(error, RowError)
    assert next(iter(wrong)) in error.message or "ISO 8601" in error.message
