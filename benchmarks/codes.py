"""Is every spelling of a code found, and is a code that is nowhere told to be nowhere?

Real documents are ingested into a database of its own after the trade example was installed. Then, through the tools that a
model calls:

- each spelling of codes that the documents print, by itself (``lookup_hts_code``) and in a sentence (``search_documents``):
  does the tool say ``exact``, and does the first passage hold the code?
- codes that are nowhere: does it say ``none``?
- the beginnings of codes (6 of 8 digits, 8 of 10) that stand nowhere by themselves: ``near``, and the first passage holds a
  longer one; codes with two digits more than what is printed: ``parent``.

Which codes a document prints is read off its text by a pattern of this file, not by the code that is measured. At the end
the index is made to look as before codes were indexed, and how long it takes to make them again is scaled to 100,000 chunks.

Run: python benchmarks/codes.py [FILE ...] [--codes 200] [--nowhere 100]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _common import shared_data, write_result
from _stack import database, load

FILES = (
    "trade-us/brazil_eo_nov2025_annexes.pdf",
    "trade-us/Metals-ANNEXES-I-A-I-B-II-III-IV.pdf",
    "trade-us/2025-15819.pdf",
    "trade-us/s232_mhd_parts.txt",
)
_PRINTED = re.compile(r"(?<![\d.\-])(?:\d{4}\.\d{2}(?:\.\d{2})?(?:\.?\d{2})?|\d{8}|\d{10})(?![\d\-]|\.\d)")
_WIDE = str.maketrans("0123456789.", "０１２３４５６７８９．")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
SENTENCES = ("What is the rate of duty on {}?", "Does {} cover steel parts from Brazil in 2025")


def groups(digits: str, *sizes: int) -> list[str]:
    """Cut digits into groups of these sizes, what is left being one more."""
    found, at = [], 0
    for size in sizes:
        found.append(digits[at : at + size])
        at += size
    return [group for group in (*found, digits[at:]) if group]


def spellings(digits: str) -> dict[str, str]:
    """Return ways to write a code, by what they are."""
    printed, pairs = groups(digits, 4, 2), groups(digits, 2, 2, 2, 2)
    thin = groups(digits, 4, 2, 2)
    found = {
        "as printed": ".".join(printed),
        "dots at eight digits": ".".join(thin),
        "dots between pairs": ".".join(pairs),
        "one dot": f"{digits[:6]}.{digits[6:]}".rstrip("."),
        "bare": digits,
        "blanks": " ".join(thin),
        "blanks, long end": " ".join(printed),
        "blanks between pairs": " ".join(pairs),
        "hyphens": "-".join(printed),
        "no-break spaces": "\u00a0".join(thin),
        "narrow no-break spaces": "\u202f".join(thin),
        "full width": ".".join(printed).translate(_WIDE),
        "full width, bare": digits.translate(_WIDE),
        "Arabic digits": ".".join(printed).translate(_ARABIC),
        "en dashes": "–".join(printed),
        "non-breaking hyphens": "‑".join(thin),
        "middle dots": "·".join(printed),
        "zero-width spaces": ".\u200b".join(printed),
        "HTS in front": f"HTS{digits}",
    }
    if len(digits) == 6:
        del found["blanks, long end"]  # the same as with blanks
    return found


def printed_codes(text: str) -> dict[str, str]:
    """Return the codes that a text prints, digits -> as printed; a chapter goes from 01 to 99."""
    found = {re.sub(r"\D", "", m.group()): m.group() for m in _PRINTED.finditer(text)}
    return {digits: code for digits, code in found.items() if digits[:2] != "00"}


def holds(text: str, digits: str, *, longer: bool = False) -> bool:
    """Tell whether a text has these digits in a row, whatever single mark stands between them."""
    end = "" if longer else r"(?!\d)"
    return re.search(r"(?<!\d)" + r"[.\s\-|]{0,3}".join(digits) + end, text) is not None


class Bench:
    """One workspace with the documents, and its tools called as a model calls them."""

    def __init__(self, paths: list[Path]) -> None:
        from apps.collections.collection import services as collection_services
        from apps.collections.documents import services as documents_services
        from apps.collections.index import embedding
        from apps.collections.models import Chunk, Document
        from apps.conversations.assistants.examples import example_install
        from jobs.runner import run_here
        from tests.factories import actor_of, make_member, make_tenant

        self.tenant = make_tenant()
        self.owner = make_member(self.tenant, "owner")
        self.actor = actor_of(self.owner)
        with self.scope():
            example_install(tenant=self.tenant, actor=self.actor, name="trade_compliance")
            self.collection = collection_services.collection_create(
                tenant=self.tenant, actor=self.actor, name="Trade"
            )
            embedding.embedder_for(self.collection.space, tenant=self.tenant).embed_query("warm")
            for path in paths:
                with path.open("rb") as file:
                    made = documents_services.document_upload(
                        tenant=self.tenant,
                        actor=self.actor,
                        collection=self.collection,
                        name=path.name,
                        chunks=iter(lambda f=file: f.read(1 << 20), b""),
                    ).document
                run_here(self.tenant.pk, made.job_id)
            rows = Document.objects.order_by("pk")
            for row in rows:
                if row.status != "ready":
                    raise SystemExit(f"{row.name}: {row.status}: {row.error_message}")
            self.types = {row.name: row.document_type for row in rows}
            self.texts = {
                row.name: "\n".join(page.text for page in row.pages.order_by("number")) for row in rows
            }
            self.chunks = Chunk.objects.count()
        self.codes = {name: printed_codes(text) for name, text in self.texts.items()}

    def scope(self) -> Any:
        """Enter the workspace."""
        from tenancy.scope import tenant_scope

        return tenant_scope(self.tenant.pk)

    def tools(self) -> Callable[..., dict[str, Any]]:
        """Return a function that calls a tool by name and returns what the model reads."""
        from apps.conversations.toolset.bundle import BUNDLE, SCOPE, TOOLSET, Scope
        from apps.conversations.toolset.trade import TRADE_BUNDLE, TRADE_TOOLS
        from apps.tools.toolset.selectors import guard_for
        from runs.actors import actor_facts
        from runs.models import Run
        from toolloop.tools import ToolContext

        run = Run.objects.create(
            tenant=self.tenant, user=self.owner.user, request={"actor": actor_facts(self.actor)}
        )
        guard = guard_for(actor=self.actor, scope={self.collection.pk: self.collection.name})
        context = ToolContext({SCOPE: Scope(self.tenant, None, run, here, guard)})
        sets = guard.toolset(TOOLSET, BUNDLE), guard.toolset(TRADE_TOOLS, TRADE_BUNDLE)
        known = {tool.name: tool for tools in sets for tool in tools}

        def call(name: str, **arguments: Any) -> dict[str, Any]:
            told: dict[str, Any] = json.loads(finished(known[name].function(context, **arguments)).content)
            return told

        return call


async def here(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Run a function in this thread."""
    return function(*arguments, **named)


def finished(coroutine: Any) -> Any:
    """Return what a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it waits for something")


def chosen(bench: Bench, count: int, chance: random.Random) -> list[str]:
    """Choose codes from all documents alike; short documents give what they have."""
    left = [sorted(codes) for codes in bench.codes.values()]
    for codes in left:
        chance.shuffle(codes)
    found: dict[str, None] = {}
    while len(found) < count and any(left):
        for codes in left:
            if codes and len(found) < count:
                found[codes.pop()] = None
    return list(found)


def nowhere(bench: Bench, count: int, chance: random.Random) -> list[str]:
    """Make codes of which nothing is printed: no code they begin with, none that begins with them; half of known headings."""
    printed = {digits for codes in bench.codes.values() for digits in codes}
    starts = {digits[:size] for digits in printed for size in (6, 8, 10) if len(digits) >= size}
    whole = "\n".join(bench.texts.values())
    headings = sorted({digits[:4] for digits in printed})
    found: list[str] = []
    while len(found) < count:
        heading = chance.choice(headings) if len(found) % 2 else f"{chance.randrange(101, 9800):04}"
        digits = heading + f"{chance.randrange(10**6):06}"[: chance.choice((4, 6))]
        if digits[:6] not in starts and not holds(whole, digits[:6], longer=True):
            found.append(digits)
    return found


def asked(codes: list[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield digits, what the spelling is, the spelling, and a sentence with it."""
    for number, digits in enumerate(codes):
        for name, text in spellings(digits).items():
            yield digits, name, text, SENTENCES[number % len(SENTENCES)].format(text)


def measure(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Ask everything and count."""
    chance = random.Random(options.seed)
    call = bench.tools()
    codes = chosen(bench, options.codes, chance)
    gone = nowhere(bench, options.nowhere, chance)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    wrong: list[str] = []
    took: list[float] = []

    def note(kind: str, is_right: bool, said: str) -> None:
        total[kind] += 1
        right[kind] += is_right
        if not is_right:
            wrong.append(f"{kind}: {said}")

    def ask(name: str, **arguments: Any) -> dict[str, Any]:
        began = time.perf_counter()
        told = call(name, **arguments)
        took.append(time.perf_counter() - began)
        return told

    for digits, spelling, text, sentence in asked(codes):
        for where, told in (
            ("alone", ask("lookup_hts_code", code=text)),
            ("in a sentence", ask("search_documents", query=sentence)),
        ):
            first = told["results"][0]["text"] if told["results"] else ""
            headings = " ".join(told["results"][0]["headings"]) if told["results"] else ""
            is_right = told["found"] == "exact" and holds(f"{first}\n{headings}", digits)
            note(f"exact {where}", is_right, f"{digits} {spelling}: {told['found']}")
    for number, digits in enumerate(gone):
        text = list(spellings(digits).values())[number % 8]
        told = ask("lookup_hts_code", code=text)
        note("none alone", told["found"] == "none" and not told["results"], f"{digits}: {told['note']}")
        told = ask("search_documents", query=SENTENCES[0].format(text))
        note("none in a sentence", told["found"] == "none", f"{digits}: {told['note']}")
    printed = {digits for some in bench.codes.values() for digits in some}
    whole = "\n".join(bench.texts.values())
    shorter = [
        digits[:-2]
        for digits in codes
        if len(digits) > 6 and digits[:-2] not in printed and not holds(whole, digits[:-2])
    ]
    for digits in dict.fromkeys(shorter):
        told = ask("lookup_hts_code", code=digits)
        first = told["results"][0]["text"] if told["results"] else ""
        note(
            "near", told["found"] == "near" and holds(first, digits, longer=True), f"{digits}: {told['note']}"
        )
    for digits in codes:
        longer = f"{digits}{chance.randrange(1, 99):02}"
        if len(digits) == 8 and not holds(whole, longer):
            told = ask("lookup_hts_code", code=longer)
            note("parent", told["found"] == "parent", f"{longer}: {told['note']}")
    took.sort()
    return {
        "documents": {
            name: {"codes": len(codes), "type": bench.types[name]} for name, codes in bench.codes.items()
        },
        "chunks": bench.chunks,
        "codes": len(codes),
        "digits": dict(Counter(map(len, codes))),
        "right": {kind: f"{right[kind]} of {total[kind]}" for kind in total},
        "wrong": wrong[:40],
        "ms_p50": round(1000 * took[len(took) // 2], 1),
        "ms_p95": round(1000 * took[int(len(took) * 0.95)], 1),
    }


def reindexed(bench: Bench) -> dict[str, Any]:
    """Take the codes out of the index, and make them again as an upgrade does."""
    from django.db import connection

    from apps.collections.index.codes import codes_reindex
    from apps.collections.models import Document

    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms SET lexemes = array_to_tsvector(ARRAY (SELECT l FROM "
            "unnest(tsvector_to_array(lexemes)) AS l WHERE l NOT LIKE 'code:%%'))"
        )
    Document.objects.update(code_form="")
    cpu, began = time.process_time(), time.perf_counter()
    documents = codes_reindex(_Context(), tenant_id=bench.tenant.pk)
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    scale = 100_000 / bench.chunks
    return {
        "documents": documents,
        "seconds": round(seconds, 2),
        "seconds_per_100k_chunks": round(seconds * scale, 1),
        "own_cpu_seconds_per_100k_chunks": round(spent * scale, 1),
    }


class _Context:
    """A job that nobody stops."""

    def check(self) -> None:
        """Go on."""

    give_way = hold = advanced = check


def main() -> None:
    """Measure and write results/codes.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--codes", type=int, default=200)
    parser.add_argument("--nowhere", type=int, default=100)
    parser.add_argument("--seed", type=int, default=16)
    options = parser.parse_args()
    paths = options.files or [shared_data() / name for name in FILES]
    before = load()
    with database():
        bench = Bench(paths)
        with bench.scope():
            result = measure(bench, options)
            result["reindex"] = reindexed(bench)
    for kind, share in result["right"].items():
        print(f"{kind:24}{share}")
    for line in result["wrong"]:
        print("  wrong", line)
    print(
        json.dumps(result["documents"]), result["chunks"], "chunks;", result["ms_p50"], result["ms_p95"], "ms"
    )
    print(result["reindex"])
    write_result("codes", {**result, "seed": options.seed, "load_before": before, "load_after": load()})


if __name__ == "__main__":
    main()
