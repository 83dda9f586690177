"""How well do shared words and numbers tell a supported statement from one that its passage does not say?

SciFact: claims that people have written from abstracts, each with the abstracts that are about it. A claim cited to such an
abstract should pass; the same claim cited to an abstract that the search ranks high for it but that is not about it should
be flagged, and so should a claim with one number changed. Run: python benchmarks/unsupported_sentences.py
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(ROOT / "benchmarks")]

import lexical  # noqa: E402

from apps.conversations import support  # noqa: E402
from apps.conversations.citations import Passage, answer_cite, words_weighted  # noqa: E402

SHARES = (0.15, 0.2, 0.25, 0.3, 0.35)
_NUMBER = re.compile(r"(?<![\w-])\d+")


def flagged(claim: str, passage: str) -> bool:
    """Tell whether a claim that cites a passage is flagged."""
    cited = answer_cite(f"{claim.rstrip('. ')} [c1].", {1: Passage(1, 1, "d", "c", passage)})
    return bool(support.unsupported_find(cited, {1: passage}))


def nearest_wrong(claim: str, corpus: dict[str, str], right: set[str], words: dict[str, set[str]]) -> str:  # fmt: skip
    """Return the abstract that shares most words with a claim and is not about it."""
    wanted = words_weighted(claim)
    return max(
        (name for name in corpus if name not in right),
        key=lambda name: (sum(w for word, w in wanted.items() if word in words[name]), name),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--claims", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "unsupported_sentences.json")  # fmt: skip
    options = parser.parse_args()
    corpus, claims, relevant = lexical.load(options.data / "retrieval-scifact" / "scifact.zip")
    words = {name: set(words_weighted(text)) for name, text in corpus.items()}
    chance = random.Random(7)
    chosen = [name for name in sorted(claims) if relevant.get(name)][: options.claims]
    cases: dict[str, list[tuple[str, str]]] = {"right": [], "near": [], "random": [], "number": []}
    for name in chosen:
        claim, right = claims[name], set(relevant[name])
        about = corpus[min(right)]
        cases["right"].append((claim, about))
        cases["near"].append((claim, corpus[nearest_wrong(claim, corpus, right, words)]))
        cases["random"].append((claim, corpus[chance.choice([n for n in corpus if n not in right])]))  # fmt: skip
        if _NUMBER.search(claim):
            changed = _NUMBER.sub(lambda m: str(int(m[0]) + 37), claim, count=1)
            cases["number"].append((changed, about))
    rows = []
    for share in SHARES:
        support._SHARE_NAMED = share  # the one constant that is chosen here
        row = {"share": share}
        for kind, pairs in cases.items():
            row[kind] = round(sum(flagged(*pair) for pair in pairs) / len(pairs), 3)
        rows.append(row)
        print("  ".join(f"{key} {value:5.3f}" for key, value in row.items()), flush=True)
    counts = {kind: len(pairs) for kind, pairs in cases.items()}
    print(counts)
    options.out.write_text(json.dumps({"cases": counts, "flagged": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
