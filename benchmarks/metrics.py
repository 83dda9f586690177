"""What does counting for ``/metrics`` cost, in CPU seconds per 1,000 requests, and what does one scrape cost?

Bar: counting takes under 1 % of the CPU of the cheapest page a person sees, the one to sign in, and a scrape every 15 seconds under 1 % of a
core. Requests go through Django's own handler in this process, blocks with and without the counting middleware in turns; each
figure is the cheapest block by ``process_time``: what else runs on the machine makes blocks dearer, never cheaper. Two blocks of a page
differ by more than counting costs, so that is measured by itself too, around a view that does nothing, and the bar is about it. It also measures one count in the files that a worker's
processes share. Makes a database of its own.

Run: python benchmarks/metrics.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

from _common import write_result  # noqa: E402
from _stack import ROOT, database  # noqa: E402

BLOCK, ROUNDS, CALLS, SCRAPES, EVERY_S, COUNTS = 40, 100, 5_000, 40, 15, 100_000
ADDRESSES = {"sign-in page": "/accounts/login/", "healthz": "/healthz"}

_SHARED = """
import sys, time
sys.path[:0] = [sys.argv[1] + "/platform"]
from basics import metrics
metrics.share_with_forks()
count = int(sys.argv[2])
metrics.HTTP_SECONDS.observe("web:home", "2xx", seconds=0.1)
began = time.process_time()
for _ in range(count):
    metrics.HTTP_SECONDS.observe("web:home", "2xx", seconds=0.1)
print((time.process_time() - began) / count)
"""


def handler(is_counting: bool) -> Callable[[str], int]:
    """Return what answers an address, with the counting middleware or without."""
    from django.conf import settings
    from django.core.handlers.base import BaseHandler
    from django.test import RequestFactory, override_settings

    middleware = [m for m in settings.MIDDLEWARE if is_counting or m != "web.metrics.requests_measured"]
    assert len(middleware) == len(settings.MIDDLEWARE) - (not is_counting)
    made, factory = BaseHandler(), RequestFactory()
    with override_settings(MIDDLEWARE=middleware):
        made.load_middleware()
    return lambda address: made.get_response(factory.get(address, HTTP_HOST="localhost")).status_code


def block_s(answer: Callable[[str], int], address: str) -> float:
    """Return the CPU seconds of 1,000 requests, measured on a block of them."""
    began = time.process_time()
    for _ in range(BLOCK):
        assert answer(address) == 200
    return (time.process_time() - began) * 1000 / BLOCK


def counting_us() -> float:
    """Return the CPU microseconds that the middleware adds to a request, measured around a view that does nothing."""
    from django.core.handlers.exception import convert_exception_to_response
    from django.http import HttpResponse
    from django.test import RequestFactory
    from django.urls import resolve

    from web.metrics import requests_measured

    request, response = RequestFactory().get("/healthz"), HttpResponse()
    request.resolver_match = resolve("/healthz")
    bare = convert_exception_to_response(lambda _: response)
    counting = convert_exception_to_response(requests_measured(bare))

    def us(answer: Callable[[object], object]) -> float:
        began = time.process_time()
        for _ in range(CALLS):
            answer(request)
        return (time.process_time() - began) * 1e6 / CALLS

    return min(us(counting) for _ in range(ROUNDS)) - min(us(bare) for _ in range(ROUNDS))


def requests_measure() -> list[dict[str, object]]:
    """Return for each page what 1,000 requests cost with counting and without, and what counting is of that in percent."""
    answers, added_us = {True: handler(True), False: handler(False)}, counting_us()
    rows: list[dict[str, object]] = []
    for name, address in ADDRESSES.items():
        spent: dict[bool, list[float]] = {True: [], False: []}
        for answer in answers.values():
            block_s(answer, address)  # imports, templates
        for number in range(ROUNDS):
            for is_counting in (True, False) if number % 2 else (False, True):
                spent[is_counting].append(block_s(answers[is_counting], address))
        without = min(spent[False])
        row = {"page": name, "with_s": min(spent[True]), "without_s": without, "added_us": added_us}
        rows.append({**row, "percent": added_us / 10 / without})
    return rows


def scrape_measure() -> dict[str, float]:
    """Return the CPU milliseconds of a scrape that reads the database, and of one that finds it read."""
    from tenancy.exposition import metrics_text
    from tenancy.readings import readings

    spent: dict[str, list[float]] = {"read": [], "kept": []}
    for _ in range(SCRAPES):
        readings.forget()
        for how in ("read", "kept"):
            began = time.process_time()
            text = metrics_text()
            spent[how].append((time.process_time() - began) * 1000)
    found = {f"{how}_ms": statistics.median(values) for how, values in spent.items()}
    return {**found, "bytes": len(text), "percent_of_core": found["read_ms"] / (EVERY_S * 10)}


def main() -> int:
    """Measure, print, write results/metrics.json; 1 when a bar is missed."""
    with database():
        rows, scrape = requests_measure(), scrape_measure()
    shared = subprocess.run(
        [sys.executable, "-c", _SHARED, str(ROOT), str(COUNTS)], capture_output=True, text=True, check=True
    )
    one_us = float(shared.stdout) * 1e6
    for row in rows:
        print(
            f"{row['page']:14} {row['with_s']:.3f} s of CPU per 1,000 requests, without counting {row['without_s']:.3f} s: "
            f"counting itself is {row['added_us']:.1f} us, {row['percent']:.2f} % of it"
        )
    print(
        f"scrape: {scrape['read_ms']:.1f} ms of CPU, {scrape['kept_ms']:.1f} ms when kept; {scrape['bytes']} bytes"
    )
    print(
        f"every {EVERY_S} s: {scrape['percent_of_core']:.3f} % of a core; a count in shared files: {one_us:.2f} us"
    )
    write_result("metrics", {"requests": rows, "scrape": scrape, "shared_count_us": one_us})
    is_met = float(str(rows[0]["percent"])) < 1 and scrape["percent_of_core"] < 1
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
