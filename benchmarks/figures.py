"""Write the figures of `docs/benchmarks.md`, and five of them in the README, from `benchmarks/results/`.

Run: python benchmarks/figures.py [--check]. With --check nothing is written, and a page that differs ends with exit code 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- figures: python benchmarks/figures.py -->\n", "<!-- /figures -->"

Row = tuple[str, str, str, str]

# The lines that the README quotes, by how they begin.
IN_README = (
    "First start",
    "Message posted to first text in the browser",
    "Hybrid search, 10k-passage",
    "SciFact nDCG@10, hybrid",
    "A job of ",
)


def figures() -> str:
    """Return the table as Markdown: what, measured, bar, script."""
    rows: list[Row] = []
    start = _read("startup")
    memory = start["memory"]["all"]
    rows += [
        ("First start, packages installed", f"{start['first_start_s']:.1f} s", "5 s", "startup"),
        ("Second start (median)", f"{_median(start['next_starts_s']):.1f} s", "2 s", "startup"),
        (
            "Database, web, worker and supervisor at rest, PSS (RSS summed counts shared pages of "
            f"{memory['processes']:.0f} processes again: {memory['rss_mb']:.0f} MB)",
            f"{memory['pss_mb']:.0f} MB",
            "400 MB",
            "startup",
        ),
    ]
    overhead = _read("overhead")
    rows.append(
        (
            "Message posted to first text in the browser, without the model's time, p50 / p95",
            f"{overhead['p50_ms']:.0f} / {overhead['p95_ms']:.0f} ms",
            "80 / 200 ms",
            "overhead",
        )
    )
    first, streams = _read("first_text"), _read("streams")
    waiting = _read("waiting_routes")
    rows += [
        (
            "Message posted to first text in the portal's stream, without the model's time, p50 / p95",
            f"{first['added_p50_ms']:.0f} / {first['added_p95_ms']:.0f} ms",
            "60 ms",
            "first_text",
        ),
        (
            f"{streams['open_conversations']} answers streaming {streams['updates_a_second']:.0f} words a second in all, from the "
            f"model to the reader, p95; {streams['idle_streams']:,} idle streams in one web process; stop to the model's "
            "connection closed",
            f"{streams['latency_p95_ms']:.0f} ms; {streams['idle_memory_mb']:.0f} MB, {streams['idle_cpu_percent']:.1f} % CPU; "
            f"{1000 * streams['stop_to_closed_provider_s']:.0f} ms",
            "150 ms; 150 MB, 5 %; 1 s",
            "streams",
        ),
        (
            f"Slowest page while a route that streams or waits is open 50 times at once, of {len(waiting['routes'])} routes",
            f"{waiting['slowest_ms']:.0f} ms",
            "1 s",
            "waiting_routes",
        ),
    ]
    concurrency = _read("concurrency")
    rows.append(
        (
            f"{concurrency['turns']} turns at once, {concurrency['model_calls_a_turn']} model calls of "
            f"{concurrency['model_call_s']:.0f} s each, {concurrency['worker_processes']} worker processes, "
            "asked over HTTP with a reader each: a turn's own time, p95, when warm and in the first round; processor time "
            "of web, worker and database; of clients and model",
            f"{concurrency['turn_p95_s']:.1f} s, {concurrency['cold']['turn_p95_s']:.1f} s; "
            f"{concurrency['product_cpu_s']:.1f} s; "
            f"{concurrency['clients_cpu_s'] + concurrency['model_cpu_s']:.1f} s",
            "5.25 s; 6 s",
            "concurrency",
        )
    )
    search = _read("search")
    latency = search["latency"]
    hybrid = latency["scopes"]["collection of 10k chunks, hybrid"]
    legs = search["scifact"]["legs"]
    plan, filings = _read("search_plan"), _read("near_identical")
    lean = plan["candidate_bytes_per_question"] / plan["whole_rows_of_candidates_bytes_per_question"]
    rows += [
        (
            "Hybrid search, 10k-passage collection in a 100k-passage workspace, question embedded, p95",
            f"{hybrid['p95_ms']:.0f} ms",
            "30 ms",
            "search",
        ),
        ("Recall@10 of the vector leg", f"{latency['vector_recall_at_10']:.2f}", "1.0", "search"),
        ("SciFact nDCG@10, BM25", f"{legs['lexical']['ndcg_at_10']:.4f}", ".69", "search"),
        ("SciFact nDCG@10, hybrid", f"{legs['vector+lexical+exact']['ndcg_at_10']:.4f}", ".715", "search"),
        (
            f"Passages that a hybrid search reads whole, of {plan['candidates_per_question']:.0f} candidates in a collection of "
            f"{plan['chunks_in_collection'] // 1000}k passages among {plan['chunks_in_workspace'] // 1000}k; bytes read to rank, in "
            "times of all candidates whole",
            f"{plan['rows_touched_per_question']['collections_chunk']:.0f}; {lean:.2f} x",
            "10; 0.2 x",
            "search_plan",
        ),
        (
            f"{filings['documents']} quarterly reports of five companies that read almost alike, {filings['pages_each']} pages of "
            f"each, {filings['questions']} questions: the right one first, and among the first five",
            f"{filings['recall_at_1']:.3f}, {filings['recall_at_5']:.3f}".replace("0.", "."),
            ".80 among five",
            "near_identical",
        ),
    ]
    reading = _read("ingestion")["total"]
    pipeline = _read("pipeline")
    embedder = _read("embedder")
    rows += [
        (
            "PDF, pages per CPU-second (child and parent): text alone, with its tables; peak memory of the child",
            f"{reading['text_pages_per_cpu_second_with_parent']:.0f}, "
            f"{reading['pages_per_cpu_second_with_parent']:.0f}; {reading['child_peak_rss_mb']:.0f} MB",
            "150, 50; 150 MB",
            "ingestion",
        ),
        (
            "Distinct HTS codes of the trade PDFs found in some passage",
            f"{reading['codes_kept']} of {reading['codes']}",
            "all",
            "ingestion",
        ),
        (
            "Share of ingestion time outside the embedder",
            f"{pipeline['outside_embedder']:.0%}",
            "20 %",
            "pipeline",
        ),
        (
            "Local embedder, 256-token passages per CPU-second, worst cosine to fp32",
            f"{embedder['chunks_per_cpu_second']:.1f}, {embedder['cosine_min']:.3f}",
            "25, .99",
            "embedder",
        ),
    ]
    silence = _read("no_silence")
    rows.append(
        (
            f"{silence['files']} corrupt and hostile files uploaded: ready, failed with a reason, without an end; "
            "ledgers that differ",
            f"{silence['ready']}, {silence['failed'] - silence['without_a_reason']}, {silence['without_an_end']}; "
            f"{silence['ledgers_unequal']}",
            "none silent, none different",
            "no_silence",
        )
    )
    rows += [*_scale_rows(), *_dataset_rows(), *_loop_rows(), *_side_rows(), *_server_rows()]
    lines = ["| | measured | bar | script |", "|---|---|---|---|"]
    lines += [f"| {what} | {got} | {bar} | `{script}.py` |" for what, got, bar, script in rows]
    return "\n".join(lines) + "\n"


def _scale_rows() -> list[Row]:
    """Return what many passages, tools and operations cost."""
    search, policy, imported = _read("search_scale"), _read("policy"), _read("openapi_import")
    metrics = _read("metrics")
    sizes = [search["collections"][size] for size in ("10k", "60k")]
    first = imported["medians"][0]
    return [
        (
            f"Hybrid search among {search['chunks']} passages of 50 workspaces, question embedded, in collections of 10k and "
            "60k: p95 alone; 20 clients at the same moment in the one of 10k: p95, searches a second; recall@10 of the "
            "vector leg",
            ", ".join(f"{size['alone']['p95_ms']:.0f} ms" for size in sizes)
            + f"; {sizes[0]['clients_20_at_once']['p95_ms']:.0f} ms, "
            f"{sizes[0]['clients_20_at_once']['per_second']:.0f}; "
            f"{min(size['vector_recall_at_10'] for size in sizes):.3f}",
            "12 ms, 15 ms; 150 ms, 160; .99",
            "search_scale",
        ),
        *_others(search),
        (
            "Permission check of a run with 500 tools, dearest of 10, 100 and 500 grants",
            f"{max(row['check_ms'] for row in policy['rows']):.1f} ms",
            "5 ms",
            "policy",
        ),
        (
            f"OpenAPI document of {first['operations']} operations read and stored",
            f"{first['wall_s']:.2f} s",
            f"{imported['bar_s']:.0f} s",
            "openapi_import",
        ),
        (
            "Counting for `/metrics`, of the CPU of the page to sign in; a scrape every 15 s, of a core",
            f"{metrics['requests'][0]['percent']:.2f}%, {metrics['scrape']['percent_of_core']:.2f}%",
            "1 %",
            "metrics",
        ),
    ]


def _others(search: dict[str, Any]) -> list[Row]:
    """Return how the same vectors are found elsewhere, where that was measured as well."""
    if not {"plain", "chroma"} <= set(search):
        return []
    others = (search["plain"]["plain"], search["plain"]["iterative"], search["chroma"])
    return [
        (
            "The same vectors in others' hands, collection of 10k, vectors only: p95 and recall@10 of pgvector used plainly, "
            "with its iterative scan, of chromadb",
            ", ".join(f"{one['10k']['p95_ms']:.0f} ms {one['10k']['recall_at_10']:.2f}" for one in others),
            "no bar",
            "search_scale",
        )
    ]


def _server_rows() -> list[Row]:
    """Return what holds between servers."""
    move, out, beside = _read("workspace_move"), _read("deprovisioning"), _read("backup_beside")
    large = move["memory"]["large"]
    doors = [told for how in out["slowest_s"].values() for told in how.items()]
    work = max(seconds for name, seconds in doors if name in {"runs", "model"})
    return [
        (
            f"A workspace with rows of {move['back']['tables']} tables (moved on, once the first move has ended its made-up "
            "work), and one that people have used, exported and imported on a server with its own database and keys: tables "
            "that differ",
            f"{len(move['back']['tables_differing']) + len(move['lively']['tables_differing'])}",
            "none",
            "workspace_move",
        ),
        (
            f"Memory of the export and of the import of {large['passages']:,} passages (PSS), and how much more than of a "
            "tenth of them",
            f"{large['export']['pss_mb']:.0f} MB, {large['import']['pss_mb']:.0f} MB; "
            f"{max(0, move['memory']['export_more_mb']):.0f} MB, {max(0, move['memory']['import_more_mb']):.0f} MB",
            "48 MB more",
            "workspace_move",
        ),
        (
            "A person deprovisioned over SCIM at one of two machines: pages, keys, tokens and streams at both; runs of both "
            "workers and their model calls",
            f"{max(seconds for name, seconds in doors if name not in {'runs', 'model'}):.1f} s; {work:.1f} s",
            "5 s",
            "deprovisioning",
        ),
        (
            f"Searches while a backup of {beside['chunks']:,} passages is written, in times of searches alone: median wait, "
            "processor time",
            f"{beside['beside_wall']:.2f} x, {beside['beside_cpu']:.2f} x",
            "1.10 x",
            "backup_beside",
        ),
    ]


def _dataset_rows() -> list[Row]:
    """Return how datasets are made."""
    speed, kills = _read("dataset_throughput"), _read("dataset_kills")
    pipeline, scifact, scale = (
        _read("dataset_pipeline"),
        _read("scifact_experiment"),
        _read("dataset_scale"),
    )
    wrong = sum(len(kills[name]) for name in ("repeated", "twice", "unknown", "incomplete", "counts"))
    return [
        (
            f"{speed['rows']} rows of a dataset by a model that takes 1 s a call and refuses one in twenty for its rate, "
            f"{speed['concurrency']} at once: wall time in times of the ideal; CPU of the worker, share of a core",
            f"{speed['wall_of_ideal']:.2f} x; {speed['worker_cpu_of_a_core']:.0%}",
            "1.15 x; 25 %",
            "dataset_throughput",
        ),
        (
            f"A job of {kills['rows']} rows whose worker is killed {kills['kills']} times at random: committed calls paid "
            "again, lost or counted wrong",
            f"{wrong}",
            "none",
            "dataset_kills",
        ),
        (
            f"A dataset of {pipeline['documents']} documents from end to end, by rules and by a model: rows kept of "
            f"{pipeline['extractive']['wanted']}; rows of the command that differ from those of REST or lack a field",
            f"{pipeline['extractive']['kept']}, {pipeline['fake-rows']['kept']}; "
            f"{sum(_problems(pipeline[model]) for model in ('extractive', 'fake-rows'))}",
            "the same rows, whole",
            "dataset_pipeline",
        ),
        (
            f"SciFact as a dataset of {scifact['rows']} questions: nDCG@10 of its experiment, BM25 and hybrid; of search itself",
            "; ".join(
                ", ".join(f"{found[arm]:.4f}" for arm in ("BM25", "hybrid"))
                for found in (scifact["ndcg_at_10"], scifact["search_ndcg_at_10"])
            ),
            "equal",
            "scifact_experiment",
        ),
        (
            f"Slowest of {len(scale['pages'])} pages over a dataset of {scale['rows']:,} rows; memory of its exports in times of "
            f"a tenth of the rows, worst of {len(scale['exports'])}",
            f"{max(page['median_ms'] for page in scale['pages'].values()):.0f} ms; "
            f"{max(form['ratio'] for form in scale['exports'].values()):.2f} x",
            "300 ms; 1.5 x",
            "dataset_scale",
        ),
    ]


def _problems(made: dict[str, Any]) -> int:
    """Return how many rows of a dataset differ by the way they were made, or are not whole; at least one when the whole is not."""
    return sum(made["problems"].values()) or int(not (made["ok"] and made["same_by_rest"]))


def _side_rows() -> list[Row]:
    """Return what changes cost, the same work on both sides in turn."""
    bucket, commits = _read("two_sides_bucket"), _read("two_sides_commits")
    works = ("ingestion", "search", "chat")
    return [
        (
            "Files in a bucket, in times of the data folder: CPU and time of an ingestion",
            f"{bucket['ingestion']['cpu_ratio']:.2f} x, {bucket['ingestion']['wall_ratio']:.2f} x",
            "1.15 x",
            "two_sides",
        ),
        (
            f"Keys and statements with the workspace in them, in times of commit {commits['before'][:8]}: CPU of "
            "ingestion, search, chat",
            ", ".join(f"{commits[work]['cpu_ratio']:.2f} x" for work in works),
            "not slower",
            "two_sides",
        ),
    ]


def _loop_rows() -> list[Row]:
    """Return what the tool-calling loop costs, over all wire formats."""
    loop, catalog, choice = _read("loop_overhead"), _read("catalog"), _read("tool_choice")
    bars = {row["what"]: row["value"] for row in loop["bars"]}
    both = ("streamed", "plain")  # the cheaper one counts

    def costs(peer: str, *modes_of_peer: str) -> str:
        found = [
            min(modes[peer][mode]["cpu_ms_per_call"] for mode in modes_of_peer)
            for modes in loop["protocols"].values()
            if modes[peer] is not None
        ]
        return f"{min(found):.1f} to {max(found):.1f} ms" if found else "not measured"

    def worst(part: str) -> float:
        return max(value for what, value in bars.items() if part in what)

    return [
        (
            "CPU of a model call in the tool-calling loop, by wire format; bare httpx2 and json: "
            f"{costs('bare httpx2 + json', 'streamed')}, raw SDKs: {costs('raw SDK', *both)}, "
            f"pydantic-ai: {costs('pydantic-ai', *both)}, LangChain: {costs('langchain', *both)}",
            costs("toolloop", "streamed"),
            "1.3 x bare + 1 ms",
            "loop_overhead",
        ),
        (
            "CPU of a model call with a history of 400 items; ten parallel tools, in times of the slowest",
            f"{worst('history of 400'):.1f} ms, {worst('ten parallel'):.2f} x",
            "5 ms, 1.5 x",
            "loop_overhead",
        ),
        ("`import toolloop`", f"{bars['import toolloop']:.0f} ms", "60 ms", "loop_overhead"),
        (
            "Right tool among the first five that a search finds, worst of the public sets over 200 and over 1,000 tools; by "
            "words alone",
            f"{_worst(choice, 200, 'both')}, {_worst(choice, 1_000, 'both')}; "
            f"{_worst(choice, 200, 'words')}, {_worst(choice, 1_000, 'words')}",
            ".76, .80",
            "tool_choice",
        ),
        (
            f"Search in a catalog of {catalog['tools']} tools; share of all schemas in the first request",
            f"{catalog['meaning']['p50_ms']:.1f} ms, {catalog['tokens']['now'] / catalog['tokens']['catalog']:.1%}",
            "5 ms, 5 %",
            "catalog",
        ),
    ]


def _worst(choice: dict[str, Any], tools: int, how: str) -> str:
    """Return the lowest share of a size, of the sets on which nothing was chosen."""
    rows = [row for row in choice["rows"] if not row["chosen_on"]]
    found = [row[how]["recall_5"] for row in rows if round(row["tools"], -2) == tools]
    return f"{min(found):.2f}".lstrip("0")


def _read(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return data


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def shortened(table: str) -> str:
    """Return the table with the lines of the README alone.

    Raises:
        ValueError: a line of the README is not in the table exactly once.
    """
    head, rows = table.splitlines()[:2], table.splitlines()[2:]
    for start in IN_README:
        found = [row for row in rows if row.startswith(f"| {start}")]
        if len(found) != 1:
            raise ValueError(f"{len(found)} figures begin with {start!r}: name one in IN_README")
        head += found
    return "\n".join(head) + "\n"


def main() -> int:
    table = figures()
    different = 0
    for name, part in (("docs/benchmarks.md", table), ("README.md", shortened(table))):
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        head, found, rest = text.partition(BEGIN)
        if not found or END not in rest:
            print(f"{name} has no place for the figures")
            return 1
        current = head + BEGIN + part + END + rest.partition(END)[2]
        if current == text:
            continue
        different = 1
        if "--check" in sys.argv:
            print(f"{name} has other figures than benchmarks/results: run python benchmarks/figures.py")
        else:
            page.write_text(current, encoding="utf-8")
    return different if "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
