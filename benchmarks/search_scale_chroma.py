"""The chromadb side of search_scale.py: runs in a virtual environment of its own, prints one JSON line."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import chromadb
import numpy as np

BATCH = 2_000


def main(folder: Path) -> None:
    vectors = np.load(folder / "v.npy")
    questions = np.load(folder / "q.npy")
    rows = json.loads((folder / "rows.json").read_text())
    scopes = json.loads((folder / "scopes.json").read_text())
    collection = chromadb.PersistentClient(str(folder / "chroma")).create_collection(
        "all", metadata={"hnsw:space": "cosine"}
    )
    began = time.perf_counter()
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        collection.add(
            ids=[str(r[0]) for r in part],
            embeddings=vectors[start : start + BATCH],
            metadatas=[{"tenant": r[1], "collection": r[2]} for r in part],
            documents=[r[3] for r in part],
        )
    seconds = time.perf_counter() - began
    result: dict[str, object] = {
        "version": chromadb.__version__,
        "loaded_per_second": round(len(rows) / seconds),
    }
    for label, pk in scopes.items():
        own = np.array([r[2] == pk for r in rows])
        ids = np.array([str(r[0]) for r in rows])[own]
        times, shares = [], []
        for number, question in enumerate([questions[0], *questions[:50]]):
            began = time.perf_counter()
            found = collection.query(query_embeddings=[question], n_results=10, where={"collection": pk})
            if number:
                times.append((time.perf_counter() - began) * 1000)
                best = ids[np.argsort(-(vectors[own] @ question))[:10]]
                shares.append(len(set(found["ids"][0]) & set(best.tolist())) / len(best))
        result[label] = {
            "p50_ms": round(float(np.percentile(times, 50)), 1),
            "p95_ms": round(float(np.percentile(times, 95)), 1),
            "recall_at_10": round(float(np.mean(shares)), 4),
        }
    print(json.dumps(result))


main(Path(sys.argv[1]))
