"""Sentence models from any folder: vectors equal to plain numpy, and whatever is wrong refused with one clear line."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from apps.collections.embedders import onnx_files
from apps.collections.embedders.base import EmbeddingError
from apps.collections.embedders.folder import FolderEmbedder, folder_check
from apps.collections.embedders.sentence_options import options_stored
from tests.collections.embedders.onnx_models import (
    DIMS,
    folder_write,
    model_write,
    reference,
    table,
    tokenizer_write,
)

TEXTS = ("The invoice must be paid.", "penguins live on ice", "wine lamps wine", "unheard words")


def refusal(folder: Path, **said: Any) -> str:
    with pytest.raises(EmbeddingError) as caught:
        folder_check(folder, said=said)
    assert caught.value.code == "embedder_misconfigured"
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize(
    "graph",
    [
        {},
        {"inputs": ("input_ids",)},
        {"inputs": ("input_ids", "attention_mask", "token_type_ids")},
        {"inputs": ("input_ids", "position_ids"), "integers": "int32"},
        {"output": "token_embeddings"},
    ],
)
def test_vectors_equal_plain_numpy_for_each_pooling_and_input(
    tmp_path: Path, pooling: str, graph: dict[str, Any]
) -> None:
    found = folder_check(folder_write(tmp_path / "tiny", pooling=pooling, **graph))
    embedder = FolderEmbedder(found.model)
    vectors = embedder.embed_documents(TEXTS)
    wanted = np.stack([reference(text, pooling) for text in TEXTS])
    assert np.abs(vectors - wanted).max() < 1e-6
    assert vectors.dtype == np.float32
    assert found.model.options.pooling == pooling
    assert found.alike > found.apart
    assert (embedder.usage.texts, embedder.usage.truncated) == (len(TEXTS), 0)


def test_half_precision_output_and_one_that_the_graph_pools(tmp_path: Path) -> None:
    half = folder_check(folder_write(tmp_path / "half", is_half=True))
    vector = FolderEmbedder(half.model).embed_query(TEXTS[0])
    assert vector.dtype == np.float32
    assert np.abs(vector - reference(TEXTS[0], "mean")).max() < 2e-3
    pooled = folder_write(tmp_path / "pooled", is_pooled=True, output="sentence_embedding")
    shutil.rmtree(pooled / "1_Pooling")
    (pooled / "modules.json").unlink()
    found = folder_check(pooled)
    assert found.model.options.pooling == "pooled"
    own = FolderEmbedder(found.model).embed_query(TEXTS[0])
    assert np.abs(own - reference(TEXTS[0], "mean")).max() < 1e-6
    assert "does its own pooling" in refusal(pooled, pooling="cls")
    both = folder_write(tmp_path / "both", pooling="cls", is_pooled=True)  # its files speak of pooling too
    assert folder_check(both).model.options.pooling == "pooled"


def test_prefixes_and_longest_text_come_from_the_files_and_options_win(tmp_path: Path) -> None:
    folder = folder_write(tmp_path / "e5")
    prompts = {"prompts": {"query": "query: ", "document": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    model = folder_check(folder).model
    assert (model.options.query_prefix, model.options.passage_prefix) == ("query: ", "passage: ")
    embedder = FolderEmbedder(model)
    asked, kept = embedder.embed_query("invoice"), embedder.embed_documents(["invoice"])[0]
    assert np.abs(asked - reference("query: invoice", "mean")).max() < 1e-6
    assert np.abs(kept - reference("passage: invoice", "mean")).max() < 1e-6
    long = embedder.embed_query("invoice bill due month")
    assert np.abs(long - reference("query: invoice bill", "mean")).max() < 1e-6
    assert embedder.usage.truncated == 1
    said = folder_check(folder, said={"query_prefix": "", "max_tokens": 32}).model
    assert (said.options.query_prefix, said.options.max_tokens) == ("", 32)
    assert said.fingerprint != model.fingerprint
    assert options_stored(json.loads(json.dumps(said.options.to_json()))) == said.options


def test_shorter_vectors_are_the_first_numbers_at_length_one(tmp_path: Path) -> None:
    model = folder_check(folder_write(tmp_path / "tiny"), said={"dimensions": 4}).model
    assert model.space.dims == 4
    vector = FolderEmbedder(model).embed_query(TEXTS[0])
    cut = reference(TEXTS[0], "mean")[:4]
    assert np.abs(vector - cut / np.linalg.norm(cut)).max() < 1e-6


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}, 512),
        ({"max_position_embeddings": 384, "model_type": "bert"}, 384),
        ({}, 512),
        ({"max_position_embeddings": "many"}, 512),
    ],
)
def test_longest_text_follows_the_model_where_nothing_else_says_it(
    tmp_path: Path, config: dict[str, Any], most: int
) -> None:
    folder = folder_write(tmp_path / "tiny")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1000000000000000019884624838656}')
    assert folder_check(folder).model.options.max_tokens == most


def test_empty_text_has_a_vector_even_without_special_tokens(tmp_path: Path) -> None:
    folder = folder_write(tmp_path / "plain")
    tokenizer_write(folder, special=False)
    vectors = FolderEmbedder(folder_check(folder).model).embed_documents(["", "."])
    assert np.array_equal(vectors[0], vectors[1])


def test_hub_cache_is_read_through_its_links_with_external_weights(tmp_path: Path) -> None:
    hub = tmp_path / "models--org--tiny-embed"
    made = folder_write(tmp_path / "made")
    (made / "onnx" / "model.onnx").unlink()
    model_write(made / "onnx" / "model.onnx")
    snapshot = hub / "snapshots" / "abc123"
    blobs = hub / "blobs"
    blobs.mkdir(parents=True)
    for number, file in enumerate(sorted(f for f in made.rglob("*") if f.is_file())):
        shutil.copy(file, blobs / f"blob{number}")
        link = snapshot / file.relative_to(made)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blobs / f"blob{number}", link.parent))
    (hub / "snapshots" / "older").mkdir()
    assert "2 revisions" in refusal(hub)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("abc123")
    model = folder_check(hub).model
    assert model.name == "tiny-embed"
    assert np.abs(FolderEmbedder(model).embed_query("wine") - reference("wine", "mean")).max() < 1e-6


def test_weights_beside_the_graph_are_read_and_belong_to_what_the_model_is(tmp_path: Path) -> None:
    folder = folder_write(tmp_path / "large")
    model_write(folder / "onnx" / "model.onnx", external="model.onnx_data")
    model = folder_check(folder).model
    assert "onnx/model.onnx_data" in model.digests
    assert np.abs(FolderEmbedder(model).embed_query("wine") - reference("wine", "mean")).max() < 1e-6
    weights = folder / "onnx" / "model.onnx_data"
    weights.write_bytes(weights.read_bytes()[::-1])
    with pytest.raises(EmbeddingError, match="other files on the machine"):
        FolderEmbedder(model).embed_query("wine")


def broken(kind: str, folder: Path) -> None:
    onnx_file = folder / "onnx" / "model.onnx"
    match kind:
        case "no model":
            onnx_file.unlink()
        case "several models":
            onnx_file.rename(folder / "onnx" / "a.onnx")
            shutil.copy(folder / "onnx" / "a.onnx", folder / "onnx" / "b.onnx")
        case "no graph":
            onnx_file.write_bytes(b"\x00garbage\xff" * 40)
        case "empty graph":
            onnx_file.write_bytes(b"")
        case "no tokenizer":
            (folder / "tokenizer.json").unlink()
        case "bad tokenizer":
            (folder / "tokenizer.json").write_text("{}")
        case "wrong dimensions":
            folder_write(folder, settings={"word_embedding_dimension": 384})
        case "no numbers":
            model_write(onnx_file, values=table() * np.float32("nan"))
        case "all zero":
            model_write(onnx_file, values=table() * 0)
        case "all the same":
            model_write(onnx_file, values=np.ones((len(table()), DIMS), np.float32))
        case "classifier":
            model_write(onnx_file, is_pooled=True, output="logits")
        case "own input":
            model_write(onnx_file, inputs=("input_ids", "task_id"))
        case "pooling unknown":
            folder_write(folder, pooling="", settings={"pooling_mode_weightedmean_tokens": True})
        case "pooling unsaid":
            (folder / "1_Pooling" / "config.json").unlink()
        case "layers beyond":
            modules = json.loads((folder / "modules.json").read_text())
            modules.append({"path": "2_Dense", "type": "sentence_transformers.models.Dense"})
            (folder / "modules.json").write_text(json.dumps(modules))
        case "broken settings":
            (folder / "modules.json").write_text("[" * 100_000)
        case "settings of another kind":
            (folder / "config.json").write_text("[1]")
        case "modules of another kind":
            (folder / "modules.json").write_text('{"a": 1}')
        case "prompts of another kind":
            (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": 7}}')


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("no model", "has no ONNX file"),
        ("several models", "Name one with --file"),
        ("no graph", "isn't an ONNX model|can't be loaded"),
        ("empty graph", "isn't an ONNX model|can't be loaded"),
        ("no tokenizer", "has no tokenizer.json"),
        ("bad tokenizer", "tokenizer.json in .* can't be read"),
        ("wrong dimensions", "have 8 numbers, but its files state 384"),
        ("no numbers", "isn't finite"),
        ("all zero", "length zero"),
        ("all the same", "the same vector for different sentences"),
        ("classifier", "logits.*a sentence model"),
        ("own input", "wants the input task_id"),
        ("pooling unknown", "pooling weightedmean_tokens isn't supported"),
        ("pooling unsaid", "--pooling to mean, cls or last"),
        ("layers beyond", "Dense"),
        ("broken settings", "modules.json in .* isn't readable JSON"),
        ("settings of another kind", "config.json in .* doesn't hold a JSON object"),
        ("modules of another kind", "doesn't hold a list of modules"),
        ("prompts of another kind", "aren't texts by name"),
    ],
)
def test_what_cannot_be_used_is_refused_with_one_line(tmp_path: Path, kind: str, said: str) -> None:
    folder = folder_write(tmp_path / "tiny")
    broken(kind, folder)
    message = refusal(folder)
    assert re.search(said, message), message


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"dimensions": 9}, "have 8 numbers, not 9"),
        ({"dimensions": 5_000}, "from 1 to 4,000"),
        ({"max_tokens": 0}, "1 to 8,192 tokens"),
        ({"pooling": "max"}, "pooling 'max' isn't supported"),
        ({"query_prefix": "x" * 3_000}, "at most 2,000 characters"),
        ({"file": "../model.onnx"}, "no file"),
        ({"file": "/etc/passwd"}, "outside of"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path: Path, said: dict[str, Any], told: str) -> None:
    assert told in refusal(folder_write(tmp_path / "tiny"), **said)


@pytest.mark.parametrize("name", ["a b", "../x", "all-MiniLM-L6-v2", "x" * 61, "-x"])
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EmbeddingError, match="can't be its name"):
        folder_check(folder_write(tmp_path / "tiny"), name=name)


def test_files_that_lead_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    folder_write(outside)
    for name in ("tokenizer.json", "onnx/model.onnx", "modules.json"):
        folder = folder_write(tmp_path / name.replace("/", "-"))
        (folder / name).unlink()
        (folder / name).symlink_to(outside / name)
        assert "outside of" in refusal(folder)
    folder = folder_write(tmp_path / "circle")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").symlink_to("tokenizer.json")
    assert "no file tokenizer.json" in refusal(folder)


@pytest.mark.parametrize("place", ["../../secret", "/etc/passwd", "", "a/../../../secret"])
def test_weights_outside_of_the_folder_are_refused_before_anything_loads_them(
    tmp_path: Path, place: str
) -> None:
    folder = folder_write(tmp_path / "tiny")
    (tmp_path / "secret").write_bytes(b"\0" * 4096)
    file = model_write(folder / "onnx" / "model.onnx", external="weights")
    graph = onnx.load(str(file), load_external_data=False)
    for tensor in graph.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = place
    onnx.save(graph, str(file))
    assert "outside of" in refusal(folder)


def test_linked_weights_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    folder = folder_write(tmp_path / "tiny")
    model_write(folder / "onnx" / "model.onnx", external="weights")
    (folder / "onnx" / "weights").rename(tmp_path / "weights")
    (folder / "onnx" / "weights").symlink_to(tmp_path / "weights")
    assert "outside of" in refusal(folder)


def test_giant_and_special_files_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_write(tmp_path / "tiny")
    with (folder / "tokenizer.json").open("r+b") as stream:
        stream.truncate(onnx_files.TOKENIZER_BYTES + 1)  # a hole: it takes no disk
    assert "at most 100,000,000 are read" in refusal(folder)
    folder = folder_write(tmp_path / "model")
    with (folder / "onnx" / "model.onnx").open("r+b") as stream:
        stream.truncate(3_000_000_000)
    assert "model.onnx has 3,000,000,000 bytes" in refusal(folder)
    folder = folder_write(tmp_path / "pipe")
    (folder / "config.json").unlink(missing_ok=True)
    os.mkfifo(folder / "config.json")
    assert "isn't a plain file" in refusal(folder)


def test_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "There is no folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert "There is no folder" in refusal(tmp_path / "file")
