"""How fast and how exact is the local embedder? Chunks of 256 tokens per CPU-second, cosine to fp32, query time.

Run: python benchmarks/embedder.py [--data DIR] [--chunks N]. One thread, real text, warmed up; CPU time of the process.
Bars: 25 chunks per CPU-second, every chunk at a cosine of .99 or better to fp32.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
from _common import ROOT, data_dir, shared_data, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.collections.embedders.minilm import (  # noqa: E402
    MAX_TOKENS,
    MiniLmEmbedder,
    is_prepared,
    prepare_model,
)
from apps.collections.embedders.minilm_build import tokenizer_path  # noqa: E402

CHUNKS_PER_CPU_SECOND, COSINE = 25, 0.99


def full_chunks(text: str, count: int) -> list[str]:
    """Cut real text into pieces of exactly 256 tokens, the two special ones included."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_path()))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    step = MAX_TOKENS - 2
    pieces = [text[offsets[i][0] : offsets[i + step - 1][1]] for i in range(0, len(offsets) - step, step)]
    return [piece for piece in pieces if len(tokenizer.encode(piece).ids) == MAX_TOKENS][:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=shared_data())
    parser.add_argument("--chunks", type=int, default=128)
    options = parser.parse_args()
    names = ("methodology.md", "assumptions.md", "policy_timing.md", "chapter99_2026_rev_6.txt")
    files = [options.data / "trade-us" / name for name in names]
    if not all(file.exists() for file in files):
        print(f"The texts are not under {options.data}; set GROUNDWORK_SHARED_DATA.")
        return 2
    text = "\n".join(file.read_text(errors="replace")[:150_000] for file in files)
    chunks = full_chunks(text, options.chunks)

    started = time.monotonic()
    was_prepared = is_prepared(data_dir())
    prepare_model(data_dir())
    build_seconds = 0.0 if was_prepared else time.monotonic() - started
    embedder = MiniLmEmbedder(data_dir())
    started = time.monotonic()
    embedder.load()
    load_seconds = time.monotonic() - started
    embedder.embed_documents(chunks[:4])

    cpu, wall = time.process_time(), time.monotonic()
    vectors = embedder.embed_documents(chunks)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    queries = [f"what duty applies to heading 85{i:02d} from country {i}" for i in range(100)]
    times = []
    for query in queries:
        started_cpu = time.process_time()
        embedder.embed_query(query)
        times.append((time.process_time() - started_cpu) * 1000)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    exact = MiniLmEmbedder(data_dir(), precision="fp32").embed_documents(chunks)
    cosine = (vectors * exact).sum(axis=1)
    result = {
        "chunks": len(chunks),
        "chunks_per_cpu_second": len(chunks) / cpu,
        "chunks_per_second": len(chunks) / wall,
        "cosine_min": float(cosine.min()),
        "cosine_mean": float(cosine.mean()),
        "query_ms_p50": statistics.median(times),
        "query_ms_p95": sorted(times)[94],
        "build_s": build_seconds,
        "load_s": load_seconds,
        "peak_rss_mb": rss,
    }
    for key, value in result.items():
        print(f"{key:24}{value:10.3f}")
    passed = result["chunks_per_cpu_second"] >= CHUNKS_PER_CPU_SECOND and result["cosine_min"] >= COSINE
    print("bars met" if passed else "BARS MISSED")
    write_result("embedder", {**result, "passed": passed})
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
