"""Does BM25 with our terms rank well, alone and fused with the local embedder? SciFact test set.

BM25 and nearness are computed here in memory, the fusion is the product's own: its SQL is given these lists
(``apps.collections.search.fusion``). The same numbers through the whole search are the work of ``search.py``; this one
tells whether a fault lies in the terms, in the fusion or in the statement that finds the candidates.

Run: python benchmarks/lexical.py [--data DIR] [--no-vectors]. It needs a database server for the fusion (DATABASE_URL, or
it starts the embedded one), and no tables.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import re
import sys
import time
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.collections.ingestion import lexical  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from _common import data_dir, shared_data, write_result  # noqa: E402
from _stack import database  # noqa: E402

DEPTH = 100

_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")


def load(path: Path):
    """Read corpus, questions and judgements; BEIR's test set is the validation claims with the papers they cite."""
    csv.field_size_limit(10_000_000)
    with zipfile.ZipFile(path) as archive:

        def rows(name: str):
            with archive.open(name) as stream:
                yield from csv.DictReader(io.TextIOWrapper(stream, "utf-8", newline=""))

        corpus = {
            row["doc_id"]: row["title"]
            + "\n"
            # The sentences are a printed array: Python string literals without commas between them.
            + " ".join(ast.literal_eval(m).strip() for m in _LITERAL.findall(row["abstract"]))
            for row in rows("corpus_train.csv")
        }
        questions: dict[str, str] = {}
        relevant: dict[str, dict[str, int]] = {}
        for row in rows("claims_validation.csv"):
            questions[row["id"]] = row["claim"]
            cited = row["cited_doc_ids"].strip("[]").replace(",", " ").split()
            relevant[row["id"]] = dict.fromkeys(cited, 1)
    return corpus, questions, relevant


def evaluate(ranked: dict[str, dict[str, float]], relevant) -> dict[str, float]:
    """Average nDCG@10, recall@10 and recall@100 of documents in the order in which they stand."""
    ndcg, r10, r100 = [], [], []
    for question, wanted in relevant.items():
        got = list(ranked[question])
        gain = sum(wanted.get(d, 0) / np.log2(i + 2) for i, d in enumerate(got[:10]))
        best = sum(s / np.log2(i + 2) for i, s in enumerate(sorted(wanted.values(), reverse=True)[:10]))
        ndcg.append(gain / best)
        r10.append(len(wanted.keys() & set(got[:10])) / len(wanted))
        r100.append(len(wanted.keys() & set(got[:100])) / len(wanted))
    return {"ndcg@10": np.mean(ndcg), "recall@10": np.mean(r10), "recall@100": np.mean(r100)}


def bm25(corpus, questions):
    """Rank by BM25 over tf vectors and idf question vectors, as the database does."""
    started = time.process_time()
    terms = {d: lexical.tokenise(text) for d, text in corpus.items()}
    seconds = time.process_time() - started
    average = float(np.mean([len(t) for t in terms.values()]))
    postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
    ids = list(corpus)
    most = 0
    for row, document in enumerate(ids):
        weights = lexical.tf_weights(terms[document], average)
        most = max(most, len(weights))
        for term, weight in weights.items():
            postings[term].append((row, weight))
    frequencies = Counter({term: len(rows) for term, rows in postings.items()})
    ranked = {}
    for question, text in questions.items():
        scores = np.zeros(len(ids))
        for term, weight in lexical.query_weights(text, len(ids), frequencies).items():
            for row, tf in postings[term]:
                scores[row] += weight * tf
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        ranked[question] = {ids[i]: scores[i] for i in order if scores[i] > 0}
    facts = {"documents_per_cpu_second": len(ids) / seconds, "most_terms": most, "average_terms": average}
    return ranked, facts


def vectors(corpus, questions):
    """Rank by the local embedder's cosine."""
    from apps.collections.embedders.minilm import MiniLmEmbedder

    embedder = MiniLmEmbedder(data_dir())
    ids = list(corpus)
    matrix = embedder.embed_documents([corpus[d] for d in ids])
    ranked = {}
    for question, text in questions.items():
        nearness = matrix @ embedder.embed_query(text)
        order = np.argsort(-nearness, kind="stable")[:DEPTH]
        ranked[question] = {ids[i]: nearness[i] for i in order}
    return ranked


def fuse(
    words: dict[str, dict[str, float]], near: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """Fuse both lists of each question by the product's SQL; scores by document, best first."""
    from django.db import connection

    from apps.collections.search.fusion import fused_sql, lexical_votes, vector_votes

    ids = sorted({document for lists in (words, near) for found in lists.values() for document in found})
    number = {document: place for place, document in enumerate(ids)}
    listed = "SELECT * FROM unnest(%({0})s::bigint[], %({0})s::bigint[], %({0}_by)s::float8[]) AS f ({1})"
    legs = [
        vector_votes(listed.format("near", "chunk_id, document_id, measure")),
        lexical_votes(listed.format("words", "chunk_id, document_id, negative")),
    ]
    fused: dict[str, dict[str, float]] = {}
    with connection.cursor() as cursor:
        for question in words:
            values = {
                "near": [number[d] for d in near[question]],
                "near_by": [1 - float(nearness) for nearness in near[question].values()],
                "words": [number[d] for d in words[question]],
                "words_by": [-float(score) for score in words[question].values()],
            }
            cursor.execute(f"SELECT chunk_id, score FROM ({fused_sql(legs)}) fused", values)
            fused[question] = {ids[row]: score for row, score in cursor.fetchall()}
    return fused


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=shared_data())
    parser.add_argument("--no-vectors", action="store_true")
    options = parser.parse_args()
    corpus, questions, relevant = load(options.data / "retrieval-scifact" / "scifact.zip")
    lexical_ranked, facts = bm25(corpus, questions)
    rows = {"bm25": evaluate(lexical_ranked, relevant)}
    if not options.no_vectors:
        with database():
            vector_ranked = vectors(corpus, questions)
            rows["vectors"] = evaluate(vector_ranked, relevant)
            rows["fused"] = evaluate(fuse(lexical_ranked, vector_ranked), relevant)
    print(f"{'SciFact test':14}" + "".join(f"{m:>12}" for m in next(iter(rows.values()))))
    for name, scores in rows.items():
        print(f"{name:14}" + "".join(f"{v:12.3f}" for v in scores.values()))
    print({k: round(v, 1) for k, v in facts.items()})
    write_result("lexical", {"scores": rows, "facts": facts})


if __name__ == "__main__":
    main()
