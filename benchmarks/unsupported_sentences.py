"""How surely are statements flagged that their passages do not say, and how often are right ones flagged?

Right ones are sentences of answers that people have written from passages: CLAPNQ (dev, answerable), MTRAG-UN's reference
answers (answerable) and those of MTRAG that all three judges call wholly faithful. Wrong ones are made from them: a "not"
planted behind the first auxiliary verb or taken away, a number changed, a name replaced by one of another answer or of the
same passage, two names exchanged (those of one list apart, as the sentence stays true), and a whole sentence held against
the passages of another question. Labelled by people:
SummEdits (edited sentences of summaries), BUMP (minimal pairs), WiCE (claims of Wikipedia), BEGIN (Wizard of Wikipedia).

The weights in ``apps/conversations/support/sentences.py`` were fitted on half 0 of the first three (by the hash of the question); its
single thresholds were read from tables over both halves, so that half 1 is no untouched test. The folder of ``--data`` holds, as their projects publish them: clapnq_dev_answerable.jsonl,
mtragun.jsonl (generation_tasks/reference.jsonl), mtrag.json (reference_subset_with_human_evaluations.json), and as far as
wanted summedits_*.json, bump.json (task2), wice.jsonl (oracle chunks of claims, test), begin.tsv.

Run: python benchmarks/unsupported_sentences.py --data FOLDER
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.conversations.citations.markers import Cited, Piece, sentences_of  # noqa: E402
from apps.conversations.support.sentences import LANGUAGE, unsupported_find  # noqa: E402

HUMAN = ("clapnq", "mtragun", "mtrag")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|may|might|has been|have been|had been|has|have|had|does|do|did)\b"
    r"(?! not|n't| no\b| never)"
)
_HAS = re.compile(r"(ed|en|wn|ne|lt|nt|un|ade|aid|eld)$")
_DENIED = re.compile(
    r"\b(is|are|was|were|can|could|will|would|should|must|may|did|does|do|has|have|had)(?: not|n't)\b"
)
_NAME = re.compile(r"[A-Z][a-zA-Z’'\-]+(?: (?:of the |of |de )?[A-Z][a-zA-Z’'\-]+)*")
_NO_NAMES = frozenset(
    """
        The A An In On At It This That These Those He She They We I If When While For And But As By To Of From
        With After Before However Additionally Yes No Your You Their His Her Its There Some Many Most All Also
    """.split()
)
# What stands between two names of one list, and behind the second where only commas do: such names have no order.
_LISTED = re.compile(rf"(?:{_NAME.pattern}|,|/|&|\s|\b(?:and|or|the|as well as)\b)*")
_JOINER = re.compile(r"/|&|\b(?:and|or|as well as)\b")
_LIST_CONTINUES = re.compile(r"\s*(?:,|/|&|and\b|or\b)")
_NUMBER = re.compile(r"(?<![\w\-.,])\d+(?!\w)")


@dataclass(frozen=True)
class Case:
    """A sentence with the passages it names.

    Attributes:
        half: 0 to choose constants on, 1 to measure.
    """

    source: str
    half: int
    text: str
    passages: tuple[str, ...]
    is_right: bool
    question: str = ""
    titles: tuple[str, ...] = ()
    kind: str = ""


def half_of(name: str) -> int:
    """Return which half of the data something belongs to."""
    return int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16) % 2


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that have four words or more."""
    return [one for one in (text[a:b] for a, b in sentences_of(text)) if len(one.split()) >= 4]


def joined(text: str) -> str:
    """Return a text that was taken apart into tokens as people write it."""
    text = text.replace("``", '"').replace("''", '"').replace(" -- ", " - ")
    text = re.sub(r"\s+([.,;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[$])\s+", r"\1", text)
    text = re.sub(r" (n't|'s|'re|'ve|'ll|'d|'m|')\b", r"\1", text)
    return re.sub(r"(\d) - (\d)", r"\1-\2", text)


def clapnq(folder: Path) -> Iterator[Case]:
    """Yield CLAPNQ's sentences."""
    for line in (folder / "clapnq_dev_answerable.jsonl").read_text().splitlines():
        row = json.loads(line)
        passages = tuple(joined(one["text"]) for one in row["passages"])
        titles = tuple(one["title"] for one in row["passages"])
        for answer in row["output"]:
            for text in sentences(joined(answer["answer"])):
                yield Case("clapnq", half_of(row["id"]), text, passages, True, row["input"], titles)


def mtragun(folder: Path) -> Iterator[Case]:
    """Yield the sentences of MTRAG-UN's reference answers."""
    for line in (folder / "mtragun.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("answerability", row.get("Answerability")) != ["ANSWERABLE"]:
            continue
        passages = tuple(one["text"] for one in row["contexts"])
        titles = tuple(one.get("title") or "" for one in row["contexts"])
        question = " ".join(one["text"] for one in row["input"])
        for answer in row["targets"]:
            for text in sentences(answer["text"]):
                yield Case("mtragun", half_of(row["task_id"]), text, passages, True, question, titles)


def mtrag(folder: Path) -> Iterator[Case]:
    """Yield the sentences of MTRAG's reference answers that each judge calls wholly faithful."""
    data = json.loads((folder / "mtrag.json").read_text())
    tasks = {row["task_id"]: row for row in data["tasks"]}
    documents = {row["document_id"]: row for row in data["documents"]}
    for row in data["evaluations"]:
        task = tasks[row["task_id"]]
        grades = {int(one["value"]) for one in row["annotations"].get("faithfulness", {}).values()}
        if (
            row["model_id"] != "reference"
            or grades != {4}
            or task["Answerability"] != ["ANSWERABLE"]
            or not task["contexts"]
        ):
            continue
        found = [documents[one["document_id"]] for one in task["contexts"]]
        passages, titles = tuple(d["text"] for d in found), tuple(d.get("title") or "" for d in found)
        question = " ".join(one["text"] for one in task["input"])
        for text in sentences(row["model_response"]):
            yield Case("mtrag", half_of(row["task_id"].split("<")[0]), text, passages, True, question, titles)


def labelled(folder: Path) -> Iterator[Case]:
    """Yield what people have labelled, as far as it is in the folder."""
    for file in sorted(folder.glob("summedits_*.json")):
        for row in json.loads(file.read_text()):
            before = sentences(row["original_summary"])
            changed = [one for one in sentences(row["summary"]) if one not in before]
            if len(changed) == 1:
                yield Case("summedits", 1, changed[0], (row["doc"],), row["label"] == 1)
    if (file := folder / "bump.json").exists():
        for row in json.loads(file.read_text()):
            right, wrong = (sentences(joined(row[name])) for name in ("reference_summary", "edited_summary"))
            for ours, theirs, is_right in ((right, wrong, True), (wrong, right, False)):
                changed = [one for one in ours if one not in theirs]
                if len(changed) == 1:
                    yield Case("bump", 1, changed[0], (joined(row["article"]),), is_right)
    if (file := folder / "wice.jsonl").exists():
        seen = set()
        for line in file.read_text().splitlines():
            row = json.loads(line)
            if row["claim"] not in seen and row["label"] != "partially_supported":
                seen.add(row["claim"])
                yield Case(
                    "wice", 1, row["claim"], ("\n".join(row["evidence"]),), row["label"] == "supported"
                )
    if (file := folder / "begin.tsv").exists():
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                if row["begin_label"] != "Generic":
                    yield Case(
                        "begin",
                        1,
                        row["response"],
                        (row["knowledge"],),
                        row["begin_label"] == "Fully attributable",
                        row["message"],
                    )


def names_of(text: str) -> list[str]:
    """Return the names of a text that do not stand alone where a sentence begins."""
    found = []
    for match in _NAME.finditer(text):
        parts = match[0].split()
        while parts and parts[0] in _NO_NAMES:
            parts.pop(0)
        name = re.sub(r"['’]s$", "", " ".join(parts))
        begins = text[: match.start()].rstrip()[-1:] in ("", ".", "!", "?", ":")
        if len(name) > 2 and not (begins and len(parts) == 1):
            found.append(name)
    return list(dict.fromkeys(found))


def is_list(text: str, one: str, two: str) -> bool:
    """Tell whether two names stand in one list, so that a text with the two exchanged says the same.

    Both orders are tried, with the places of the names that are nearest to each other.
    """
    pairs = (
        (a, b)
        for first, second in ((one, two), (two, one))
        for a in spots(text, first)
        for b in spots(text, second)
    )
    start, end = min(
        (pair for pair in pairs if pair[0][1] <= pair[1][0]), key=lambda pair: pair[1][0] - pair[0][1]
    )
    between = text[start[1] : end[0]]
    if not between.strip() or not _LISTED.fullmatch(between):
        return False
    return bool(_JOINER.search(between) or ("," in between and _LIST_CONTINUES.match(text, end[1])))


def spots(text: str, name: str) -> list[tuple[int, int]]:
    """Return where a name stands in a text."""
    return [match.span() for match in re.finditer(re.escape(name), text)]


def planted(cases: list[Case], seed: int = 7) -> Iterator[Case]:
    """Yield sentences that are wrong, made from right ones."""
    chance = random.Random(seed)
    everybody = sorted({name for case in cases for name in names_of(case.text)})
    for case in cases:

        def wrong(kind: str, text: str, case: Case = case) -> Case:
            return replace(case, kind=kind, text=text, is_right=False)

        if found := _AUXILIARY.search(case.text):
            after = re.match(r"\s+(\w+)", case.text[found.end() :])
            if found[0] not in ("has", "have", "had") or (after and _HAS.search(after[1])):
                at = found.start() + len(found[0].split()[0])
                yield wrong("not planted", f"{case.text[:at]} not{case.text[at:]}")
        taken = _DENIED.sub(r"\1", case.text, count=1)
        taken = case.text.replace("cannot", "can", 1) if taken == case.text else taken
        if taken != case.text:
            yield wrong("not taken away", taken)
        if number := _NUMBER.search(case.text):
            changed = str(int(number[0]) + chance.choice([1, 2, 3, 7, 10]))
            yield wrong("number changed", case.text[: number.start()] + changed + case.text[number.end() :])
        passage = " ".join(case.passages)
        own = [name for name in names_of(case.text) if name in passage]
        near = " ".join([passage, case.question, *case.titles])
        if own:
            other = chance.choice([name for name in everybody if name not in near])
            yield wrong("name of elsewhere", case.text.replace(chance.choice(own), other))
        rest = [n for n in names_of(passage) if n not in case.text and not any(n in o or o in n for o in own)]
        if own and rest:
            yield wrong("name of the passage", case.text.replace(chance.choice(own), chance.choice(rest)))
        pairs = [(a, b) for n, a in enumerate(own) for b in own[n + 1 :] if a not in b and b not in a]
        if pairs:
            one, two = chance.choice(pairs)
            both = re.compile(f"{re.escape(one)}|{re.escape(two)}")
            swap: Callable[[re.Match[str]], str] = lambda m, one=one, two=two: two if m[0] == one else one  # type: ignore[misc]  # noqa: E731
            kind = "names of a list exchanged" if is_list(case.text, one, two) else "names exchanged"
            yield wrong(kind, both.sub(swap, case.text))
    for case, other_case in zip(cases, cases[40:], strict=False):
        if case.passages != other_case.passages:
            yield replace(
                case,
                kind="of other passages",
                passages=other_case.passages,
                titles=other_case.titles,
                is_right=False,
            )


def reasons(case: Case) -> list[str]:
    """Return why a sentence that names all its passages is flagged, empty where it is not."""
    passages = dict(enumerate(case.passages, 1))
    cited = Cited([Piece(case.text.rstrip(), tuple(passages))])
    around = ". ".join([case.question, *case.titles])
    return [reason for _, _, reason in unsupported_find(cited, passages, around) if reason != LANGUAGE]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--half", type=int, default=1)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "benchmarks" / "results" / "unsupported_sentences.json"
    )
    options = parser.parse_args()
    people = [case for read in (clapnq, mtragun, mtrag) for case in read(options.data)]
    cases = [case for case in [*people, *planted(people)] if case.half == options.half]
    cases += labelled(options.data)
    rows: dict[str, dict[str, Any]] = {}
    begun = time.process_time()
    for case in cases:
        found = reasons(case)
        name = case.kind or ("right" if case.is_right else "wrong")
        own = "people's answers" if case.source in HUMAN else case.source
        for group in (f"{own}: {name}", *([f"{case.source}: {name}"] if own != case.source else ())):
            row = rows.setdefault(group, {"cases": 0, "flagged": 0, "reasons": {}})
            row["cases"] += 1
            row["flagged"] += bool(found)
            for reason in found:
                row["reasons"][reason] = row["reasons"].get(reason, 0) + 1
    milliseconds = 1000 * (time.process_time() - begun) / len(cases)
    for group, row in sorted(rows.items()):
        row["share"] = round(row["flagged"] / row["cases"], 3)
        print(f"{group:40s} {row['cases']:5d}  {row['share']:.3f}  {row['reasons']}", flush=True)
    wanted = ("not planted", "number changed", "name of elsewhere", "names exchanged", "of other passages")
    recall = sum(rows[f"people's answers: {kind}"]["share"] for kind in wanted) / len(wanted)
    false = rows["people's answers: right"]["share"]
    summary = {
        "half": options.half,
        "recall": round(recall, 3),
        "false_alarms": false,
        "precision_one_to_one": round(recall / (recall + false), 3),
        "ms_a_sentence": round(milliseconds, 2),
    }
    print(summary)
    options.out.write_text(json.dumps({**summary, "groups": rows}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
