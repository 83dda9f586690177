"""What the loop costs beside a bare HTTP exchange, the providers' own packages, pydantic-ai and LangChain.

    python benchmarks/loop_overhead.py --peers      builds virtual environments for the peers under var/bench-venvs
    python benchmarks/loop_overhead.py [--rounds 7] [--protocol chat ...]

A server in a process of its own answers at once in four wire formats. Each peer runs in its own process on one core (the
server on another), and the peers take turns, so that other work on the machine meets them all. A conversation is ten tool
calls in ten turns and an answer: eleven model calls; or ten calls in one turn and an answer. What counts is CPU time.

Bars: CPU per model call at most 1.3 times bare httpx2 and json in the same mode (streamed) plus 1 ms; below the raw SDK for
OpenAI Responses and Gemini; below pydantic-ai and LangChain everywhere (each in its cheaper mode). Below 5 ms of CPU for a
call with a history of 400 items. Ten parallel tools within 1.5 times the slowest one. `import toolloop` within 60 ms and
without any SDK. A peer that is not installed is reported as not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _common import ROOT, write_result

PEERS = ROOT / "benchmarks" / "loop_peers"
VENVS = ROOT / "var" / "bench-venvs"
PACKAGES = {
    "pydantic-ai": ["pydantic-ai-slim[openai,anthropic,google]"],
    "langchain": ["langchain", "langchain-openai", "langchain-anthropic", "langchain-google-genai"],
}
PROTOCOLS = ("responses", "chat", "anthropic", "gemini")
MODEL_CALLS = {"seq": 11, "par": 2}
ANSWER_WITHIN_S = 120
SDKS = ("openai", "anthropic", "google.genai")
IMPORTS = {
    "toolloop": "import toolloop",
    # No bar is set for these: what a first use loads.
    "asyncio alone": "import asyncio",
    "toolloop.run_loop, tool, Toolset": "from toolloop import run_loop, tool, Toolset",
    "toolloop.Client": "from toolloop import Client",
}


@dataclass(frozen=True)
class Peer:
    """A script of ``loop_peers`` and the virtual environment it runs in, "" for the project's own."""

    name: str
    script: str
    venv: str = ""
    modes: tuple[str, ...] = ("streamed", "plain")

    @property
    def python(self) -> str:
        return str(VENVS / self.venv / "bin" / "python") if self.venv else sys.executable

    @property
    def is_installed(self) -> bool:
        return Path(self.python).exists()


BARE = Peer("bare httpx2 + json", "bare.py")
RAW = Peer("raw SDK", "raw_sdk.py")
OURS = Peer("toolloop", "ours.py", modes=("streamed",))
FRAMEWORKS = (
    Peer("pydantic-ai", "pydantic_ai_peer.py", "pydantic-ai"),
    Peer("langchain", "langchain_peer.py", "langchain"),
)


class PeerFailed(Exception):
    """A peer did not do its task; the message is the last it wrote."""


@dataclass
class Worker:
    """One running process: a peer in one mode.

    Attributes:
        found: per scenario, CPU milliseconds per model call of each round; ``walls`` the same of wall time.
    """

    peer: Peer
    mode: str
    process: subprocess.Popen[str]
    errors: Path
    found: dict[str, list[float]] = field(default_factory=dict)
    walls: dict[str, list[float]] = field(default_factory=dict)

    def ask(self, order: dict[str, Any] | None) -> dict[str, Any]:
        """Send an order (None: wait for the greeting) and return what comes back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            if order is not None:
                self.process.stdin.write(json.dumps(order) + "\n")
                self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_WITHIN_S)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            last = self.errors.read_text().strip().splitlines()[-1:] or ["it said nothing"]
            raise PeerFailed(f"{self.peer.name}, {self.mode}: {last[0]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def measure(self, scenario: str, conversations: int, *, keep: bool = True) -> None:
        answer = self.ask({"scenario": scenario, "conversations": conversations})
        if keep:
            calls = conversations * MODEL_CALLS[scenario]
            self.found.setdefault(scenario, []).append(answer["cpu_s"] * 1000 / calls)
            self.walls.setdefault(scenario, []).append(answer["wall_s"] * 1000 / calls)


def pinned(core: int) -> Any:
    """Return what binds a new process to a core, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {cores[core % len(cores)]})


@contextmanager
def running(script: str, *arguments: str, python: str, core: int, errors: Path) -> Iterator[Any]:
    """Run a script of ``loop_peers``; it is gone when the block ends."""
    with errors.open("w") as log:
        process = subprocess.Popen(
            [python, str(PEERS / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=pinned(core),  # safe: this process has no threads
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def compare(protocol: str, url: str, logs: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Measure every peer on one protocol, in turns; return per peer and mode the medians."""
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        workers = []
        for peer in (BARE, RAW, OURS, *FRAMEWORKS):
            found[peer.name] = {} if peer.is_installed else None
            for mode in peer.modes if peer.is_installed else ():
                errors = logs / f"{peer.script}.{protocol}.{mode}.log"
                process = stack.enter_context(
                    running(peer.script, protocol, mode, url, python=peer.python, core=-1, errors=errors)
                )
                workers.append(Worker(peer, mode, process, errors))
        for worker in workers:
            found[worker.peer.name]["versions"] = worker.ask(None)["versions"]
        for worker in workers:
            for scenario in MODEL_CALLS:
                worker.measure(scenario, 2, keep=False)
        for _ in range(args.rounds):
            for worker in workers:
                worker.measure("seq", args.conversations)
                worker.measure("par", args.conversations)
        for worker in workers:
            found[worker.peer.name][worker.mode] = {
                "cpu_ms_per_call": statistics.median(worker.found["seq"]),
                "wall_ms_per_call": statistics.median(worker.walls["seq"]),
                "cpu_ms_ten_in_one_turn": statistics.median(worker.found["par"]) * 2,
            }
    return found


def long_runs(protocol: str, url: str, logs: Path, rounds: int) -> dict[str, Any]:
    """Measure long histories and slow parallel tools of toolloop."""
    errors = logs / f"ours_long.{protocol}.log"
    with running(
        "ours_long.py", protocol, "streamed", url, python=sys.executable, core=-1, errors=errors
    ) as process:
        worker = Worker(OURS, "long", process, errors)
        worker.ask(None)
        history = worker.ask({"scenario": "history", "rounds": rounds * 4})
        return {"history": history, "parallel": worker.ask({"scenario": "parallel", "rounds": 3})}


def import_costs(rounds: int) -> dict[str, Any]:
    """Measure imports in fresh interpreters: medians beyond a bare one, and which SDKs came along."""
    programs = {"bare": "pass", **IMPORTS}
    walls: dict[str, list[float]] = {name: [] for name in programs}
    cpus: dict[str, list[float]] = {name: [] for name in programs}
    sdks: set[str] = set()
    tail = f"; import sys; print([s for s in {SDKS!r} if s in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "platform")}
    for _ in range(rounds):
        for name, program in programs.items():
            spent = os.times()
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", program + tail],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            walls[name].append((time.perf_counter() - begun) * 1000)
            now = os.times()
            cpu = now.children_user + now.children_system
            cpus[name].append((cpu - spent.children_user - spent.children_system) * 1000)
            sdks.update(json.loads(done.stdout.replace("'", '"')))
    bare = {"wall": statistics.median(walls["bare"]), "cpu": statistics.median(cpus["bare"])}
    return {
        "bare_interpreter_ms": bare["wall"],
        "sdks_loaded": sorted(sdks),
        **{
            name: {
                "wall_ms": statistics.median(walls[name]) - bare["wall"],
                "cpu_ms": statistics.median(cpus[name]) - bare["cpu"],
            }
            for name in IMPORTS
        },
    }


Bar = dict[str, Any]


def bar(what: str, value: float | None, limit: float | None, unit: str = "ms") -> Bar:
    """Compare a value with its limit; one of them None: not measured."""
    known = value is not None and limit is not None
    return {
        "what": what,
        "value": value,
        "limit": limit,
        "unit": unit,
        "met": value <= limit if known else None,
    }


def bars(result: dict[str, Any]) -> list[Bar]:
    """Return every bar with what was measured."""
    rows = []
    for protocol, found in result["protocols"].items():
        ours = found[OURS.name]["streamed"]["cpu_ms_per_call"]
        bare = found[BARE.name]["streamed"]["cpu_ms_per_call"]
        rows.append(bar(f"{protocol}: 1.3 x bare + 1 ms", ours, 1.3 * bare + 1))
        rivals = [RAW] if protocol in ("responses", "gemini") else []
        rows += [
            bar(f"{protocol}: below {peer.name}", ours, cheapest(found[peer.name]))
            for peer in (*rivals, *FRAMEWORKS)
        ]
        long = result["long"][protocol]
        rows += [
            bar(f"{protocol}: history of 400 items, {form}", long["history"][form], 5)
            for form in ("native", "normalised")
        ]
        rows += [
            bar(f"{protocol}: ten parallel tools, {kind}", wall, 1.5, "x slowest")
            for kind, wall in long["parallel"].items()
        ]
    rows.append(bar("import toolloop", result["imports"]["toolloop"]["wall_ms"], 60))
    rows.append(bar("SDKs that an import loads", len(result["imports"]["sdks_loaded"]), 0, ""))
    return rows


def cheapest(found: dict[str, Any] | None) -> float | None:
    modes = [found[mode]["cpu_ms_per_call"] for mode in ("streamed", "plain")] if found else []
    return min(modes, default=None)


def table(result: dict[str, Any]) -> None:
    print(
        f"{'CPU ms per model call':34}{'streamed':>9}{'x bare':>8}{'plain':>9}{'x bare':>8}"
        f"{'10 in one turn':>16}{'wall ms':>9}"
    )
    for protocol, found in result["protocols"].items():
        for name, modes in found.items():
            row = f"{protocol + ' ' + name:34}"
            if modes is None:
                print(f"{row}not measured: run with --peers to install it")
                continue
            for mode in ("streamed", "plain"):
                if mode in modes:
                    cpu = modes[mode]["cpu_ms_per_call"]
                    row += f"{cpu:9.2f}{cpu / found[BARE.name][mode]['cpu_ms_per_call']:8.1f}"
                else:
                    row += f"{'-':>9}{'':8}"
            streamed = modes["streamed"]
            print(f"{row}{streamed['cpu_ms_ten_in_one_turn']:16.2f}{streamed['wall_ms_per_call']:9.2f}")
    print()
    for row in result["bars"]:
        verdict = {True: "met", False: "NOT MET", None: "not measured"}[row["met"]]
        value, limit = (f"{row[key]:.2f}" if row[key] is not None else "-" for key in ("value", "limit"))
        print(f"{row['what']:50}{value:>8} of {limit:>6} {row['unit']:10}{verdict}")

    print()
    for name in IMPORTS:
        print(f"import {name:43}{result['imports'][name]['wall_ms']:8.1f} ms")


def build_peers() -> None:
    """Install the frameworks, each in a virtual environment of its own, with uv or pip."""
    uv = Path(sys.executable).with_name("uv")
    for name, packages in PACKAGES.items():
        target = VENVS / name
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(target)], check=True)
        python = str(target / "bin" / "python")
        installer = [str(uv), "pip", "install", "--quiet", "--python", python]
        if not uv.exists():
            installer = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*installer, *packages], check=True)
        print(f"{name}: {target}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="build the peers' environments first")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conversations", type=int, default=2, help="in each round")
    parser.add_argument("--protocol", action="append", choices=PROTOCOLS)
    args = parser.parse_args()
    if args.peers:
        build_peers()
    logs = ROOT / "var" / "loop-overhead"
    logs.mkdir(parents=True, exist_ok=True)
    before = os.getloadavg()[0]
    result: dict[str, Any] = {
        "rounds": args.rounds,
        "conversations_a_round": args.conversations,
        "protocols": {},
        "long": {},
    }
    try:
        with running("_server.py", python=sys.executable, core=0, errors=logs / "server.log") as server:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            for protocol in args.protocol or PROTOCOLS:
                result["protocols"][protocol] = compare(protocol, url, logs, args)
                result["long"][protocol] = long_runs(protocol, url, logs, args.rounds)
    except PeerFailed as failure:
        print(f"nothing was written: {failure}")
        return 1
    result["imports"] = import_costs(args.rounds * 2 + 1)
    result["bars"] = bars(result)
    result |= {"load_before": before, "load_after": os.getloadavg()[0]}
    table(result)
    whole = not args.protocol
    if whole:
        print(write_result("loop_overhead", result))
    return 0 if all(row["met"] for row in result["bars"]) else 1


if __name__ == "__main__":
    sys.exit(main())
