"""How often the right tool is among the first that a search in a catalog of 200 and of 1,000 tools finds.

    python -m benchmarks.tool_choice FOLDER [--questions 500]

FOLDER holds copies of public sets under any names: MetaTool, Seal-Tools, gorilla (for its function calling leaderboard),
UltraTool. The share of words in the joined score was chosen on the first 500 questions of MetaTool and on Seal-Tools' dev
part; the others, and the further questions of MetaTool, are what it is measured on.

Bars: the right tool among the first five for .76 of the questions over 200 tools and for .80 over 1,000, in every set.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.collections.embedders.minilm import MiniLmEmbedder  # noqa: E402
from benchmarks._common import data_dir, write_result  # noqa: E402
from benchmarks._tool_sets import ToolSet, tool_sets  # noqa: E402
from toolloop.tools import meaning  # noqa: E402
from toolloop.tools.catalog import Catalog  # noqa: E402

CHOSEN_ON = ("MetaTool", "Seal-Tools dev")
SIZES = {200: 0.76, 1_000: 0.80}
DEPTH = 10


async def ranked(
    catalog: Catalog, questions: Sequence[tuple[str, str]], share: float | None
) -> dict[str, float]:
    """Ask a catalog every question; by words alone where ``share`` is None."""
    at_1 = at_5 = 0
    begun = time.perf_counter()
    if share is not None:
        meaning.WORDS_SHARE = share
    for question, right in questions:
        page = (
            catalog.search(question, limit=DEPTH)
            if share is None
            else await catalog.find(question, limit=DEPTH)
        )
        at_1 += page.names[:1] == (right,)
        at_5 += right in page.names[:5]
    took = (time.perf_counter() - begun) * 1000 / len(questions)
    return {"recall_1": at_1 / len(questions), "recall_5": at_5 / len(questions), "ms": took}


def measured(part: ToolSet, embedder: MiniLmEmbedder, share: float) -> dict[str, Any]:
    catalog = Catalog(part.tools.values(), embedder=lambda texts: [*embedder.embed_documents(texts)])
    return {
        "words": asyncio.run(ranked(catalog, part.questions, None)),
        "meaning": asyncio.run(ranked(catalog, part.questions, 0.0)),
        "both": asyncio.run(ranked(catalog, part.questions, share)),
    }


def parts_of(sets: Sequence[ToolSet], size: int, most: int) -> list[tuple[ToolSet, bool]]:
    """Return what is measured at a size, each with whether constants were chosen on it."""
    found = []
    for one in sets:
        if len(one.tools) < 0.95 * size:
            continue
        cut = one.cut(size, most)
        found.append((cut, one.name in CHOSEN_ON))
        if one.name == "MetaTool":
            rest = one.cut(size, 3 * most).questions[most:]
            found.append((ToolSet("MetaTool, further questions", cut.tools, rest), False))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=500)
    given = parser.parse_args()
    sets = tool_sets(given.folder)
    embedder, share, rows, met = MiniLmEmbedder(data_dir()), meaning.WORDS_SHARE, [], True
    for size, bar in SIZES.items():
        for part, is_chosen_on in parts_of(sets, size, given.questions):
            row = measured(part, embedder, share)
            met &= is_chosen_on or row["both"]["recall_5"] >= bar
            rows.append(
                {
                    "set": part.name,
                    "tools": len(part.tools),
                    "questions": len(part.questions),
                    "chosen_on": is_chosen_on,
                    "bar": bar,
                    **row,
                }
            )
            told = "   ".join(
                f"{how} {found['recall_1']:.3f} {found['recall_5']:.3f} {found['ms']:5.1f} ms"
                for how, found in row.items()
            )
            note = "   (constants chosen here)" if is_chosen_on else ""
            print(f"{len(part.tools):5} {part.name:30}{len(part.questions):5}   {told}{note}", flush=True)
    print("recall@1, recall@5, time a question. " + ("bars met" if met else "BARS NOT MET"))
    write_result("tool_choice", {"rows": rows, "words_share": share, "met": met})


if __name__ == "__main__":
    main()
