"""Questions in English about code: is the function found by its words, by its meaning, by both as search fuses them?

CoSQA's test questions (github.com/Jun-jie-Huang/CoCLR, ``data/search/cosqa-retrieval-{test,dev}-500.json``): what people
typed into a search engine, and a Python function that answers it, among all functions of both files. A function is asked
for whole, with its docstring and identifiers; with its docstring alone; and without it. BM25, nearness and fusion as in
``lexical.py``.

Run: python benchmarks/code_questions.py FOLDER. It needs a database server for the fusion, as ``lexical.py`` does.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

import lexical  # noqa: E402
from _common import write_result  # noqa: E402
from _stack import database  # noqa: E402


def read(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Return functions and questions by their ids, and which function answers which question."""
    rows = {
        name: json.loads((folder / f"cosqa-retrieval-{name}-500.json").read_text())
        for name in ("dev", "test")
    }
    code = {str(row["retrieval_idx"]): row["code"] for part in rows.values() for row in part}
    questions = {row["idx"]: row["doc"] for row in rows["test"]}
    return code, questions, {row["idx"]: {str(row["retrieval_idx"]): 1} for row in rows["test"]}


def docstring_split(code: str) -> tuple[str, str]:
    """Return a function without its docstring, and the docstring; "" where Python's reader finds none."""
    try:
        body = ast.parse(code).body[0]
    except (SyntaxError, IndexError):
        return code, ""
    if not isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return code, ""
    said = ast.get_docstring(body) or ""
    if not said:
        return code, ""
    first, lines = body.body[0], code.split("\n")
    return "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno or first.lineno :]), said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    code, questions, relevant = read(parser.parse_args().folder)
    parts = {key: docstring_split(text) for key, text in code.items()}
    ways = {
        "code with its docstring": code,
        "code alone": {key: bare for key, (bare, _) in parts.items()},
        "docstring alone": {key: said or bare for key, (bare, said) in parts.items()},
    }
    results: dict[str, Any] = {"functions": len(code), "questions": len(questions)}
    with database():
        for name, corpus in ways.items():
            words, _ = lexical.bm25(corpus, questions)
            near = lexical.vectors(corpus, questions)
            found = {"words": words, "meaning": near, "both": lexical.fuse(words, near)}
            results[name] = {
                f"{leg}_ndcg_at_10": round(lexical.evaluate(ranked, relevant)["ndcg@10"], 4)
                for leg, ranked in found.items()
            }
            print(name, results[name], flush=True)
    write_result("code_questions", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
