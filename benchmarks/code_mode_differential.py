"""Compare generated programs in code mode with CPython: what they print and call, in which order, and how they end.

    PYTHONPATH=.:platform python -m benchmarks.code_mode_differential --programs 20000 --seed 1

Prints every difference with its program, and writes ``benchmarks/results/code_mode_differential.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.code_programs.compare import Compared, compare

_BATCH = 500
_RESULTS = Path(__file__).parent / "results" / "code_mode_differential.json"


async def measure(programs: int, seed: int) -> dict[str, Any]:
    """Return the numbers for so many programs from a seed on."""
    total, begun = Compared(), time.monotonic()
    for first in range(0, programs, _BATCH):
        seeds = [seed * 1_000_000 + n for n in range(first, min(first + _BATCH, programs))]
        part = await compare(seeds)
        total.same += part.same
        total.calls += part.calls
        total.different += part.different
        for why, count in part.refused.items():
            total.refused[why] = total.refused.get(why, 0) + count
        for found in part.different:
            print(
                f"--- seed {found['seed']} ({found['families']})\n{found['program']}\n{found['difference']}\n"
            )
        print(f"{first + len(seeds)} programs, {len(total.different)} different", flush=True)
    refused = sum(total.refused.values())
    return {
        "programs": programs,
        "seed": seed,
        "same": total.same,
        "different": len(total.different),
        "different_seeds": [found["seed"] for found in total.different],
        "refused": refused,
        "refused_share": round(refused / programs, 4),
        "refused_for": dict(sorted(total.refused.items(), key=lambda item: -item[1])[:20]),
        "tool_calls": total.calls,
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=_RESULTS)
    given = parser.parse_args()
    result = asyncio.run(measure(given.programs, given.seed))
    given.json.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
