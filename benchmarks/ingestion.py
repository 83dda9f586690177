"""How fast and how lean is reading PDFs? Real PDFs through the limited child: pages per CPU-second, peak memory.

Run: python benchmarks/ingestion.py [--data DIR]. CPU time is that of the child process as a whole (interpreter start,
PDFium, cleaning, headings, tables, sending) plus, apart, that of the parent (frames, junk, chunks). Each file is read
twice: as a user's upload is, and with no time for tables. Bars: 150 pages per CPU-second of text, 50 with tables, 150 MB
in the child, every tariff code in some chunk.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _common import ROOT, shared_data, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.collections.ingestion.chunking import chunk_document  # noqa: E402
from apps.collections.ingestion.extraction import DEFAULT_LIMITS, document_extract  # noqa: E402
from apps.collections.ingestion.identifiers import fidelity_measure  # noqa: E402
from apps.collections.ingestion.types import ReaderLimits  # noqa: E402

HTS = re.compile(r"(?<![\d.])\d{4}\.\d{2}(?:\.\d{2,4})*(?!\d)")
TEXT_PAGES_PER_CPU_SECOND, PAGES_PER_CPU_SECOND, RSS_MB = 150, 50, 150


def measure(path: Path, limits: ReaderLimits = DEFAULT_LIMITS) -> dict[str, float]:
    """Read one file and count."""
    child, parent = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time()
    document = document_extract(path, name=path.name, limits=limits)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    child_seconds = after.ru_utime + after.ru_stime - child.ru_utime - child.ru_stime
    chunks = chunk_document(document)
    parent_seconds = time.process_time() - parent
    fidelity = fidelity_measure(document.body_text, (c.indexed_text for c in chunks))
    codes = set(HTS.findall(document.text))
    in_chunks = set(HTS.findall("\n".join(c.text for c in chunks)))
    return {
        "pages": len(document.pages),
        "child_cpu_s": child_seconds,
        "parent_cpu_s": parent_seconds,
        "chunks": len(chunks),
        "headings": len(document.headings),
        "junk_pages": sum(1 for page in document.pages if page.junk),
        "codes": len(codes),
        "codes_kept": len(codes & in_chunks),
        "fidelity": fidelity.share,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=shared_data())
    options = parser.parse_args()
    files = sorted((*options.data.glob("pdf-us-gov/*.pdf"), *options.data.glob("trade-us/*.pdf")))
    if not files:
        print(f"No PDFs under {options.data}; set GROUNDWORK_SHARED_DATA.")
        return 2
    rows = {path.name: measure(path) for path in files}
    text_only = [measure(path, ReaderLimits(table_seconds=0.0)) for path in files]
    print(
        f"{'file':40}{'pages':>6}{'p/CPU-s':>9}{'chunks':>8}{'heads':>7}{'junk':>6}{'codes':>11}{'facts':>8}"
    )
    for name, row in rows.items():
        codes = f"{row['codes_kept']:.0f}/{row['codes']:.0f}"
        print(
            f"{name[:38]:40}{row['pages']:6.0f}{row['pages'] / row['child_cpu_s']:9.0f}{row['chunks']:8.0f}"
            f"{row['headings']:7.0f}{row['junk_pages']:6.0f}{codes:>11}{row['fidelity']:8.4f}"
        )
    pages = sum(row["pages"] for row in rows.values())
    child = sum(row["child_cpu_s"] for row in rows.values())
    parent = sum(row["parent_cpu_s"] for row in rows.values())
    text_seconds = sum(row["child_cpu_s"] + row["parent_cpu_s"] for row in text_only)
    rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    total = {
        "pages": pages,
        "pages_per_cpu_second_child": pages / child,
        "pages_per_cpu_second_with_parent": pages / (child + parent),
        "text_pages_per_cpu_second_with_parent": pages / text_seconds,
        "child_peak_rss_mb": rss,
        "codes": sum(row["codes"] for row in rows.values()),
        "codes_kept": sum(row["codes_kept"] for row in rows.values()),
    }
    print({key: round(value, 1) for key, value in total.items()})
    passed = (
        total["pages_per_cpu_second_with_parent"] >= PAGES_PER_CPU_SECOND
        and total["text_pages_per_cpu_second_with_parent"] >= TEXT_PAGES_PER_CPU_SECOND
        and rss <= RSS_MB
        and total["codes"] == total["codes_kept"]
    )
    print("bars met" if passed else "BARS MISSED")
    write_result("ingestion", {"total": total, "files": rows, "passed": passed})
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
