"""Does search find the right passage in every language, and is the fusion of its legs as good as the better one?

Reads questions and passages in the format of SQuAD (``data[].paragraphs[].context`` and ``.qas[].question``), one file
per language, such as XQuAD's; each passage becomes one chunk, embedded and indexed by the product's own stages, and the
questions are asked through ``search_run``: recall@1 and nDCG@10 of each leg and of both fused.

Measured with XQuAD (github.com/google-deepmind/xquad), for French github.com/AkariAsai/extractive_rc_by_runtime_mt, for
Hebrew HeQ (github.com/NNLP-IL/Hebrew-Question-Answering-Dataset), for Japanese JSQuAD (github.com/yahoojapan/JGLUE, ``ja``)
and, not tuned on, JaQuAD (github.com/SkelterLabsInc/JaQuAD, ``ja-jaquad``). Questions that their passage does not answer are
left out.

Run: python benchmarks/languages.py FOLDER [--questions 200] [--passages 72] [--only zh,ja] [--together]. The language is the
part of a file's name before ``.json`` (``xquad.zh.json``). With --together all languages lie in one collection. Needs an empty
database server (DATABASE_URL) or none, then it starts the embedded one; it leaves nothing behind.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _stack import database  # noqa: E402

LEGS = {"words": ("lexical",), "meaning": ("vector",), "both": ("vector", "lexical", "exact")}


def questions_read(path: Path, most: int) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the first passages of a file, and the questions they answer, each with its passage's number."""
    passages: list[str] = []
    asked: list[tuple[str, int]] = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            if len(passages) == most:
                return passages, asked
            asked += [
                (one["question"], len(passages)) for one in paragraph["qas"] if not one.get("is_impossible")
            ]
            passages.append(paragraph["context"])
    return passages, asked


def collection_load(tenant: Any, actor: Any, collection: Any, name: str, passages: list[str]) -> None:
    from search import document_make, draft

    from apps.collections.pipeline import run as pipeline
    from jobs.context import JobContext
    from jobs.models import Job

    began = time.perf_counter()
    drafts = [draft(number, text, key=f"{name}-{number}") for number, text in enumerate(passages)]
    document = document_make(tenant, collection, name, drafts)
    pipeline.document_ingest(JobContext(Job.objects.get(pk=document.job_id)), document_id=document.pk)
    print(f"{name}: {len(passages)} passages in {time.perf_counter() - began:.0f} s", flush=True)


def measure(
    tenant: Any, actor: Any, collection: Any, name: str, asked: list[tuple[str, int]]
) -> dict[str, Any]:
    from search import ndcg

    from apps.collections.search import search_run

    table: dict[str, Any] = {"questions": len(asked)}
    for label, legs in LEGS.items():
        firsts, gains = 0, 0.0
        for question, number in asked:
            hits = search_run(
                tenant=tenant, actor=actor, collections=[collection], query=question, k=10, legs=legs
            ).hits
            found = [hit.metadata["key"] for hit in hits]
            firsts += found[:1] == [f"{name}-{number}"]
            gains += ndcg(found, {f"{name}-{number}": 1})
        table[label] = {
            "recall_at_1": round(firsts / len(asked), 3),
            "ndcg_at_10": round(gains / len(asked), 3),
        }
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=200, help="per language, at most")
    parser.add_argument("--passages", type=int, default=10_000, help="per language, at most")
    parser.add_argument("--only", default="", help="languages, with commas")
    parser.add_argument("--together", action="store_true", help="all languages in one collection")
    parser.add_argument("--write", action="store_true", help="write results/languages.json")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    files = {
        path.name.removesuffix(".json").rpartition(".")[2]: path
        for path in sorted(options.folder.glob("*.json"))
    }
    files = {name: path for name, path in files.items() if not only or name in only}
    if not files:
        parser.error(f"no files like xquad.zh.json in {options.folder}")
    results: dict[str, Any] = {}
    with database():
        results = run(files, options)
    worse = [
        name
        for name, row in results.items()
        if row["both"]["recall_at_1"] < max(row["words"]["recall_at_1"], row["meaning"]["recall_at_1"]) - 0.01
    ]
    if options.write:
        write(results, is_together=options.together)
    print(f"worse than its better leg: {', '.join(worse) or 'none'}")
    return bool(worse)


def run(files: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    from apps.collections.collection import services
    from tenancy.actors import system_actor
    from tenancy.models import Tenant
    from tenancy.scope import tenant_scope

    tenant = Tenant.objects.create(slug="benchmark-languages", name="Languages")
    results: dict[str, Any] = {}
    with tenant_scope(tenant.pk):
        actor = system_actor(tenant.pk)
        every = services.collection_create(tenant=tenant, actor=actor, name="All")
        rows = {}
        for name, path in files.items():
            passages, asked = questions_read(path, options.passages)
            random.Random(1).shuffle(asked)
            place = every
            if not options.together:
                place = services.collection_create(tenant=tenant, actor=actor, name=name)
            collection_load(tenant, actor, place, name, passages)
            results[name] = {"passages": len(passages)}
            rows[name] = (place, asked[: options.questions])
            if not options.together:
                results[name] |= measure(tenant, actor, place, name, rows[name][1])
                show(name, results[name])
                if options.write:  # At once: a run of many languages is long, and may be ended.
                    write(results, is_together=False)
        if options.together:
            for name, (place, asked) in rows.items():
                results[name] |= measure(tenant, actor, place, name, asked)
                show(name, results[name])
    return results


def write(results: dict[str, Any], *, is_together: bool) -> None:
    """Write what was measured; languages that were not measured anew stay as they were."""
    from _common import write_result

    name = "languages_together" if is_together else "languages"
    known = ROOT / "benchmarks" / "results" / f"{name}.json"
    before = json.loads(known.read_text())["languages"] if known.exists() else {}
    write_result(name, {"languages": before | results})


def show(name: str, row: dict[str, Any]) -> None:
    legs = "   ".join(
        f"{label} {row[label]['recall_at_1']:.3f} / {row[label]['ndcg_at_10']:.3f}" for label in LEGS
    )
    print(f"{name:4} {row['questions']} questions, recall@1 / nDCG@10:   {legs}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
