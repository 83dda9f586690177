"""What does Groundwork add to the model's own time? From the POST of a message to the first streamed text in the DOM.

A real Chromium asks through the page, the fake model says its first word at once (it thinks 0 ms), so all that is measured
is ours: request, queue, worker, adapter, event log, stream, rendering, swap. Times of one turn come from one machine's clock.

Run: python benchmarks/overhead.py [--samples 60] [--warm-up 8] [--model fake-words20]. The model named here is over with its
first word; figures of another model than the usual one are printed, not kept. Makes a database of its own on the server of
DATABASE_URL, or on an embedded one. Bars (a quiet machine of two cores): p50 below 80 ms, p95 below 200 ms.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys

from _common import write_result
from _stack import database, load, percentile, product

MODEL = "fake-words5-gap50"
"""As models stream: an answer that is over with its first word comes with the end of its run, whose rows it waits for."""
TURNS_PER_CONVERSATION = 10

# Epoch milliseconds of what the page sees of one turn.
PROBE = """
window.probe = {};
const now = () => performance.timeOrigin + performance.now();
const once = (name) => { window.probe[name] ??= now(); };
document.addEventListener("htmx:before:request", (e) => { if (e.target.id === "composer") window.probe = {post: now()}; });
document.addEventListener("htmx:after:request", (e) => { if (e.target.id === "composer") once("answered"); });
document.addEventListener("htmx:sse:after:connection", () => once("connected"));
document.addEventListener("htmx:sse:before:message", () => once("frame"));
new MutationObserver(() => {
  if (!window.probe.post || window.probe.text) return;
  const last = document.querySelector("#turns > .turn:last-child .blocks");
  if (last?.textContent.trim()) once("text");
}).observe(document, {subtree: true, childList: true, characterData: true});
"""


def main() -> None:
    """Measure and write results/overhead.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--model", default=MODEL)
    args = parser.parse_args()
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps a loop in this thread
    before = load()
    with database(), product(args.model) as (stack, _):
        turns = measure(stack.url, args.model, args.warm_up, args.samples)
    whole = [turn["text"] - turn["post"] for turn in turns]
    phases = {name: statistics.median(turn[name] for turn in splits(turns)) for name in splits(turns)[0]}
    result = {
        "samples": len(whole),
        "p50_ms": round(statistics.median(whole), 1),
        "p95_ms": round(percentile(whole, 0.95), 1),
        "max_ms": round(max(whole), 1),
        "model_ms": 0,
        "median_phases_ms": {name: round(value, 1) for name, value in phases.items()},
        "load_before": before,
        "load_after": load(),
    }
    for name, value in result.items():
        print(f"{name:18} {value}")
    if args.model == MODEL:
        print(write_result("overhead", result))
    sys.exit(0 if result["p50_ms"] < 80 and result["p95_ms"] < 200 else 1)


def measure(url: str, model: str, warm_up: int, samples: int) -> list[dict[str, float]]:
    """Ask through the page; return the times of each turn after the warm-up, in epoch milliseconds."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import sign_in
    from tests.browser.portal import Portal
    from tests.cast import make_cast

    cast = make_cast()
    turns, turn = [], "#turns > .turn"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_context(base_url=url).new_page()
        page.add_init_script(PROBE)
        sign_in(page, cast.user("member").email)
        portal = Portal(page, cast.tenant.slug)
        for number in range(warm_up + samples):
            if number % TURNS_PER_CONVERSATION == 0:
                portal.open()
                portal.ask("Warm up", model)
                portal.wait_end()
            portal.box.fill(f"Question {number}")
            portal.box.press("Enter")
            page.locator(f"{turn}:nth-child({number % TURNS_PER_CONVERSATION + 2}) .blk").wait_for()
            portal.wait_end()
            turns.append(page.evaluate("window.probe") | stored(cast.tenant.pk))
        browser.close()
    return turns[warm_up:]


def stored(tenant_id: int) -> dict[str, float]:
    """Return when the last run's rows were written, in epoch milliseconds."""
    from runs.models import Run, RunEvent
    from tenancy.scope import tenant_scope

    with tenant_scope(tenant_id):
        run = Run.objects.select_related("job").latest("pk")
        text = RunEvent.objects.filter(run=run, kind="text").earliest("seq")
        times = {
            "run_created": run.created_at,
            "claimed": run.job.started_at,
            "run_started": run.started_at,
            "text_stored": text.at,
        }
        return {name: moment.timestamp() * 1000 for name, moment in times.items()}


def splits(turns: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return the lengths of each turn's phases; stream and worker run side by side."""
    return [
        {
            "post_to_response": t["answered"] - t["post"],
            "post_to_rows": t["run_created"] - t["post"],
            "rows_to_claim": t["claimed"] - t["run_created"],
            "claim_to_start": t["run_started"] - t["claimed"],
            "start_to_first_text_stored": t["text_stored"] - t["run_started"],
            "text_stored_to_frame_in_browser": t["frame"] - t["text_stored"],
            "frame_to_dom": t["text"] - t["frame"],
            "response_to_stream_connected": t.get("connected", t["answered"]) - t["answered"],
        }
        for t in turns
    ]


if __name__ == "__main__":
    main()
