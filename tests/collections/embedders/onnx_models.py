"""Tiny sentence models in folders, made with real ONNX graphs and a real tokenizer: a token's vector is a row of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "query",
    "passage",
    ":",
    ".",
    "the",
    "invoice",
    "must",
    "be",
    "paid",
    "within",
    "thirty",
    "days",
    "payment",
    "of",
    "bill",
    "is",
    "due",
    "in",
    "a",
    "month",
    "penguins",
    "live",
    "on",
    "ice",
    "antarctica",
    "wine",
    "lamps",
]
DIMS = 8
_TYPES = {"int64": TensorProto.INT64, "int32": TensorProto.INT32}


def table(dims: int = DIMS) -> np.ndarray:
    """One row a word; words about money are near each other, so that like sentences are alike."""
    made = np.random.default_rng(7).normal(0, 0.3, (len(WORDS), dims)).astype(np.float32)
    for word in ("invoice", "paid", "payment", "bill", "due", "month", "days"):
        made[WORDS.index(word), 0] += 3
    for word in ("penguins", "ice", "antarctica"):
        made[WORDS.index(word), 1] += 3
    return made


def tokenizer_write(folder: Path, *, special: bool = True) -> Path:
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()]
    )
    if special:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    # As published files often are: cut and padded to a length of their own.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def model_write(
    file: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    integers: str = "int64",
    output: str = "last_hidden_state",
    is_pooled: bool = False,
    is_half: bool = False,
    values: np.ndarray | None = None,
    external: str = "",
) -> Path:
    """Write a graph: rows of a table, plus a part of what came before a token and of the whole text.

    So the first, the last and the mean of the tokens all know the text, and all differ.
    """
    rows = table() if values is None else values
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["found"], axis=0),
        helper.make_node("CumSum", ["found", "one"], ["summed"]),  # a token knows what came before it
        helper.make_node("Mul", ["summed", "tenth"], ["before"]),
        helper.make_node("ReduceSum", ["found", "middle"], ["all"], keepdims=1),
        helper.make_node("Mul", ["all", "tenth"], ["around"]),
        helper.make_node("Add", ["found", "before"], ["placed"]),
        helper.make_node("Add", ["placed", "around"], ["tokens"]),
    ]
    last = "tokens"
    if is_pooled:
        nodes.append(helper.make_node("ReduceMean", ["tokens"], ["pooled"], axes=[1], keepdims=0))
        last = "pooled"
    kind = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    nodes.append(helper.make_node("Cast", [last], [output], to=kind))
    shape = ["texts", rows.shape[1]] if is_pooled else ["texts", "tokens", rows.shape[1]]
    columns = [helper.make_tensor_value_info(n, _TYPES[integers], ["texts", "tokens"]) for n in inputs]
    graph = helper.make_graph(
        nodes,
        "sentence",
        columns,
        [helper.make_tensor_value_info(output, kind, shape)],
        [
            numpy_helper.from_array(rows, "table"),
            numpy_helper.from_array(np.array(1, np.int64), "one"),
            numpy_helper.from_array(np.array([1], np.int64), "middle"),
            numpy_helper.from_array(np.array(0.1, np.float32), "tenth"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 9
    file.parent.mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save(made, str(file), save_as_external_data=True, location=external, size_threshold=256)
    else:
        onnx.save(made, str(file))
    return file


def folder_write(folder: Path, *, pooling: str = "mean", settings: Any = None, **graph: Any) -> Path:
    """Write a whole folder as sentence-transformers lays it out."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer_write(folder)
    model_write(folder / "onnx" / "model.onnx", **graph)
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}
    made = {f"pooling_mode_{mode}": name == pooling for name, mode in modes.items()}
    made |= {"word_embedding_dimension": DIMS} | (settings or {})
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(made))
    return folder


def reference(text: str, pooling: str, rows: np.ndarray | None = None) -> np.ndarray:
    """The vector by plain numpy, with nothing of the product's."""
    rows = table() if rows is None else rows
    spaced = text.lower().replace(".", " . ").replace(":", " : ").split()
    ids = [2, *(WORDS.index(w) if w in WORDS else 1 for w in spaced), 3]
    found = rows[ids]
    tokens = found + 0.1 * np.cumsum(found, axis=0) + 0.1 * found.sum(axis=0)
    vector = {"mean": tokens.mean(axis=0), "cls": tokens[0], "last": tokens[-1]}[pooling]
    unit: np.ndarray = vector / np.linalg.norm(vector)
    return unit
