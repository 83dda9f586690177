"""Every format: what it writes comes back, damage is found, and other programs read it."""

from __future__ import annotations

import gc
import json
import sys
import zipfile
from dataclasses import replace

import pytest
import yaml
from pydantic import TypeAdapter

from apps.datasets.formats import FORMATS, format_get, parquet, validate
from apps.datasets.formats.base import EXAMPLES
from apps.datasets.records import parts
from apps.datasets.records import record as r
from tests.datasets.formats.files import CARD, rows_of, written
from tests.datasets.row_samples import ALL, FULL, PLAIN

EXPORTS = [name for name, form in FORMATS.items() if form.is_export]
PARALLEL = replace(
    FULL,
    id="10",
    messages=(
        FULL.messages[1],
        parts.TraceMessage(
            "assistant", "", (parts.ToolCall("a", "x", {}), parts.ToolCall("b", "y", {"n": [1]}))
        ),
        parts.TraceMessage("tool", "one", (), "a"),
        parts.TraceMessage("tool", "two", (), "b"),
        FULL.messages[4],
    ),
)
RETRIEVAL = r.Record(id="11", question="Where?", sources=FULL.sources[:1], split=parts.Split.TEST)
RECORDS = (*ALL, PARALLEL, RETRIEVAL)


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
    # All that is loaded and that other tests have left: not to be looked through at each row. It stays so, as pytest_collection
    # leaves it: else everything after this test would look through it again.
    gc.freeze()
    held(60)  # what is loaded once
    gc.collect()
    gc.freeze()
    few, many = held(60), held(160)
    assert many - few < 100


def test_a_formula_of_a_row_is_no_formula_in_a_spreadsheet(tmp_path):
    text = written(FORMATS["csv"], [PLAIN], tmp_path).read_text()
    assert "\"'=HYPERLINK" in text
    assert ",=" not in text
