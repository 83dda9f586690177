"""Does the extractive mode answer what the documents answer, and say of the rest that they don't?

Questions are asked over passages that words and the local embedder find, fused as the product does. Sets:

- SQuAD 2.0 and XQuAD files (``--qa DIR``, as published: github.com/rajpurkar/SQuAD-explorer, github.com/google-deepmind/xquad):
  a question over all paragraphs of its file ("answerable"); the same one without the article it was asked about ("moved");
  SQuAD's questions that were written to look answerable beside their paragraph ("adversarial").
- Own questions over the federal reports and notices of the shared documents (``not_found_questions.json``).

For each set: how many are answered, worded as near, or not found; and the curve of both errors over the bound. Run: python
benchmarks/not_found.py --qa DIR [--questions N]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

import lexical  # noqa: E402
from _common import data_dir, shared_data, write_result  # noqa: E402
from _stack import database  # noqa: E402

from toolloop.best_sentences import RankedPassage, best_quotes  # noqa: E402
from toolloop.evidence import evidence_of, strength_of  # noqa: E402
from toolloop.language_detection import language_or_script  # noqa: E402

FOUND = 8
BOUNDS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
FILES = ("squad2", "xquad.en", "xquad.de", "xquad.es", "xquad.ru", "xquad.zh", "xquad.ar")
Case = tuple[str, list[RankedPassage], float | None, list[str]]


def squad(path: Path, count: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Read paragraphs by name, and a sample of questions."""
    paragraphs, asked = {}, []
    for article in json.loads(path.read_bytes())["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            name = f"{article['title']}#{number}"
            paragraphs[name] = paragraph["context"]
            for question in paragraph["qas"]:
                kind = "adversarial" if question.get("is_impossible") else "answerable"
                golds = [answer["text"] for answer in question.get("answers", ())]
                asked.append(
                    {"question": question["question"], "of": article["title"], "kind": kind, "golds": golds}
                )
    random.Random(3).shuffle(asked)
    kinds = ("answerable", "adversarial")
    return paragraphs, [q for kind in kinds for q in [a for a in asked if a["kind"] == kind][:count]]


def filings() -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Read pieces of 900 characters of the shared documents, and our questions about them."""
    import pypdfium2

    pieces: dict[str, str] = {}
    for path in sorted([*(shared_data() / "pdf-us-gov").iterdir(), *(shared_data() / "trade-us").iterdir()]):
        if path.suffix == ".pdf":
            pdf = pypdfium2.PdfDocument(path)
            text = "\n".join(pdf[n].get_textpage().get_text_range() for n in range(min(len(pdf), 40)))
        elif path.suffix == ".md":
            text = path.read_text()
        else:
            continue
        text = text.replace("\r\n", "\n").replace("\ufffe", "")
        pieces |= {f"{path.stem}#{at}": text[at : at + 900] for at in range(0, min(len(text), 120_000), 750)}
    asked = json.loads((Path(__file__).parent / "not_found_questions.json").read_text())
    return pieces, [{**q, "of": "", "golds": [q["gold"]] if q.get("gold") else []} for q in asked]


def cases(
    paragraphs: dict[str, str], asked: list[dict[str, Any]], embedder: Any
) -> Iterator[tuple[str, Case]]:
    """Yield kind and case: what a question finds, with and without the article it is about."""
    ids = list(paragraphs)
    matrix = embedder.embed_documents([paragraphs[name] for name in ids])
    words, _ = lexical.bm25(paragraphs, {q["question"]: q["question"] for q in asked})
    for item in asked:
        question = item["question"]
        nearness = matrix @ embedder.embed_query(question)
        told = language_or_script(question)
        near = {ids[at]: nearness[at] for at in np.argsort(-nearness, kind="stable")[:100]}
        fused = list(lexical.fuse({question: words[question]}, {question: near})[question])
        if told not in (
            "",
            "English",
        ):  # the product gives the vectors of a language that it has not learnt no say
            fused = [*dict.fromkeys([*words[question], *near])]
        like = dict(zip(ids, map(float, nearness), strict=True))
        others = [name for name in fused if name.rsplit("#", 1)[0] != item["of"]]
        kinds = [(item["kind"], fused), ("moved", others)][
            : 2 if item["kind"] == "answerable" and item["of"] else 1
        ]
        for kind, found in kinds:
            passages = [
                RankedPassage(f"c{at}", name.rsplit("#", 1)[0].replace("_", " "), None, "", paragraphs[name])
                for at, name in enumerate(found[:FOUND])
            ]
            best = max((like[name] for name in found[:FOUND]), default=0.0)
            is_known = (told or language_or_script(passages[0].text)) in ("", "English")
            yield kind, (question, passages, best if is_known else None, item["golds"])


def measure(found: list[Case]) -> dict[str, Any]:
    """Return the shares of each outcome, and of the strengths above each bound."""
    told = [evidence_of(question, passages, near) for question, passages, near, _ in found]
    strengths = [strength_of(question, passages, near) for question, passages, near, _ in found]
    quoted = sum(
        any(
            gold.casefold() in " ".join(q.text for q in best_quotes(question, passages, 5)).casefold()
            for gold in golds
        )
        for (question, passages, _, golds), said in zip(found, told, strict=True)
        if said != "none"
    )
    count = len(found)
    return {
        "questions": count,
        **{name: round(told.count(name) / count, 3) for name in ("answer", "near", "none")},
        "quotes the gold answer": round(quoted / count, 3),
        "strength at least": {str(b): round(sum(s >= b for s in strengths) / count, 3) for b in BOUNDS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--qa", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=300)
    options = parser.parse_args()
    with database():  # the fusion is the product's SQL
        write_result("not_found", run(options))


def run(options: argparse.Namespace) -> dict[str, Any]:
    from apps.collections.embedders.minilm import MiniLmEmbedder

    embedder = MiniLmEmbedder(data_dir())
    results: dict[str, Any] = {}
    for name in (*FILES, "filings"):
        path = options.qa / f"{name}.json"
        if name != "filings" and not path.is_file():
            print(f"{name}: no {path}, left out")
            continue
        read = filings() if name == "filings" else squad(path, options.questions)
        by_kind: dict[str, list[Case]] = {}
        for kind, case in cases(*read, embedder):
            by_kind.setdefault(kind, []).append(case)
        results[name] = {kind: measure(found) for kind, found in by_kind.items()}
        for kind, row in results[name].items():
            print(
                f"{name:10} {kind:12}", {k: v for k, v in row.items() if k != "strength at least"}, flush=True
            )
            print(" " * 23, row["strength at least"], flush=True)
    return results


if __name__ == "__main__":
    main()
