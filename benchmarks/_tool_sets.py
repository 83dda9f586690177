"""Public sets of tools with questions that one tool answers, read from copies of their repositories.

Nothing of them is kept here: whoever measures has the repositories in a folder, under any names.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolloop.tools import Tool

_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "any": "string",
    "String": "string",
}


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools, and questions each with the name of the one tool that answers it."""

    name: str
    tools: Mapping[str, Tool]
    questions: Sequence[tuple[str, str]]

    def cut(self, tools: int, questions: int) -> ToolSet:
        """Return a part of so many tools with questions about them, the same part on every machine.

        Half of them answer questions, as far as there are so many; the others are there to be mistaken for them.
        """
        names = sorted(self.tools, key=_dice)
        answering = {name for _, name in self.questions}
        first = [name for name in names if name in answering][: tools // 2]
        kept = {name: self.tools[name] for name in (*first, *names)[: tools + len(first)]}
        kept = dict(list(kept.items())[:tools])
        asked = sorted((q for q in self.questions if q[1] in kept), key=lambda q: _dice(q[0]))
        return ToolSet(self.name, kept, asked[:questions])


def tool_sets(folder: Path) -> list[ToolSet]:
    """Return the sets that a folder has.

    Raises:
        SystemExit: it has none.
    """
    found: list[ToolSet] = []
    for file, read in _READERS.items():
        at = next(iter(sorted(folder.rglob(file))), None)
        if at is not None:
            found += read(at)
    if not found:
        raise SystemExit(
            f"{folder} has none of {', '.join(_READERS)}: clone the repositories of the sets into it."
        )
    return found


def _metatool(questions: Path) -> Iterator[ToolSet]:
    """HowieHwong/MetaTool: about 200 plugins of one sentence each, 20,000 questions, many of them vague."""
    described = json.loads(next(iter(questions.parent.parent.rglob("plugin_des.json"))).read_text())
    tools = {name: _tool(name, text, {}) for name, text in described.items()}
    with questions.open(newline="") as stream:
        asked = [(row["Query"], row["Tool"]) for row in csv.DictReader(stream)]
    yield ToolSet("MetaTool", tools, [q for q in asked if q[1] in tools])


def _seal_tools(file: Path) -> Iterator[ToolSet]:
    """fairyshine/Seal-Tools: 4,000 tools with parameters; its questions for development, and those of other domains."""
    tools = {}
    for row in _lines(file):
        properties = {key: _property(value) for key, value in row["parameters"].items()}
        schema = {"type": "object", "properties": properties}
        tools[row["api_name"]] = _tool(row["api_name"], row["api_description"], schema)
    for part in ("dev", "test_in_domain", "test_out_domain"):
        rows = list(_lines(file.with_name(f"{part}.jsonl")))
        gold = [(row["query"], {call["api"] for call in row["calling"]}) for row in rows]
        yield ToolSet(f"Seal-Tools {part}", tools, [(q, next(iter(g))) for q, g in gold if len(g) == 1])


def _bfcl(file: Path) -> Iterator[ToolSet]:
    """ShishirPatil/gorilla, Berkeley function calling leaderboard: the functions of all its single calls in one catalog."""
    tools: dict[str, Tool] = {}
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for part in ("live_multiple", "live_simple", "multiple", "simple_python"):
        data = file.with_name(f"BFCL_v4_{part}.json")
        for row in _lines(data):
            own = {f["name"]: f for f in row["function"]}
            # Of two functions with one name the first counts; questions about the other are left out below.
            for name, one in own.items():
                tools.setdefault(_plain(name), _tool(name, one["description"], _schema(one["parameters"])))
            asked[row["id"]] = (row["question"][0][-1]["content"], own)
    questions = []
    for part in ("live_multiple", "live_simple", "multiple", "simple_python"):
        for row in _lines(file.parent / "possible_answer" / f"BFCL_v4_{part}.json"):
            names = {name for call in row["ground_truth"] for name in call}
            question, own = asked[row["id"]]
            right = [own[name] for name in names if name in own] if len(names) == 1 else []
            questions += [
                (question, _plain(one["name"]))
                for one in right
                if tools[_plain(one["name"])].description == one["description"]
            ]
    yield ToolSet("BFCL", tools, questions)


def _ultratool(file: Path) -> Iterator[ToolSet]:
    """JoeYing1019/UltraTool: 400 tools of daily life; the questions that need one of them."""
    tools: dict[str, Tool] = {}
    questions = []
    for row in _lines(file):
        for one in row["tools"]:
            schema = one["arguments"] if isinstance(one["arguments"], dict) else {}
            tools.setdefault(one["name"], _tool(one["name"], one["description"], _schema(schema)))
        if len(row["tools"]) == 1:
            questions.append((row["question"].strip(), row["tools"][0]["name"]))
    yield ToolSet("UltraTool", tools, questions)


_READERS: Mapping[str, Callable[[Path], Iterator[ToolSet]]] = {
    "all_clean_data.csv": _metatool,
    "tool.jsonl": _seal_tools,
    "BFCL_v4_live_multiple.json": _bfcl,
    "English-dataset/test.json": _ultratool,
}


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Tool:
    whole = {"type": "object", "properties": {}, **schema}
    return Tool(_plain(name), description or name, whole, lambda **_: "")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64]


def _schema(found: Mapping[str, Any]) -> dict[str, Any]:
    properties = found.get("properties") or {}
    return {"type": "object", "properties": {k: _property(v) for k, v in properties.items()}}


def _property(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {"type": "string"}
    kind = str(found.get("type", "string"))
    kept: dict[str, Any] = {"type": _TYPES.get(kind, kind)}
    kept |= {k: found[k] for k in ("description", "enum") if found.get(k)}
    if kind in ("dict", "object") and isinstance(found.get("properties"), dict):
        kept |= {"type": "object", "properties": _schema(found)["properties"]}
    return kept


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open() as stream:
        for line in stream:
            if line.strip():
                yield json.loads(line)


def _dice(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
