"""Can people work with a dataset of 100,000 rows? Server time of its pages, of two arms compared over it, and memory of exports.

Memory is the peak of what Python holds while an export is written, beside that of one with a tenth of the rows: constant
means that the two are the same.

Run: ``python benchmarks/dataset_scale.py [--rows 100000] [--forms jsonl parquet]``. Each form takes minutes, because its
memory is traced. Makes a database of its own.
Bar: every page under 300 ms, memory of an export at most 1.5 of that of a tenth.
"""

from __future__ import annotations

import argparse
import sys

from _common import write_result
from _stack import database, load


def main() -> int:
    """Measure, print a table, write results/dataset_scale.json; 0 when every page and export is within its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--forms", nargs="+", metavar="FORM", help="exports to measure; all when none is named"
    )
    args = parser.parse_args()
    before = load()
    with database():
        from _dataset_scale import EXPORTS, measured

        unknown = sorted(set(args.forms or ()) - set(EXPORTS))
        if unknown:
            parser.error(f"no such form: {', '.join(unknown)}. There are: {', '.join(EXPORTS)}")
        result = measured(args.rows, args.repeats, args.forms or EXPORTS)
    result |= {"load_before": before, "load_after": load()}
    print(write_result("dataset_scale", result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
