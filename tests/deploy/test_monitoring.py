"""Rules and dashboard name what ``/metrics`` of real processes really has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.utils import timezone

from basics.metrics import instruments
from jobs.models import Worker
from tests.cast import Cast, make_cast
from tests.deploy.firing import moved, of
from tests.deploy.promql import ALERTS, DASHBOARD, alerts, crosses, panels, pending_s, used_by
from tests.exposition import Said, said_by, said_here
from tests.processes import kill_hard
from tests.servers import Stack, wait_for

TOKEN = "0123456789abcdef-secret"
SAMPLES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
PROMETHEUS = {"up": {"job", "instance"}}
"""What Prometheus itself knows of a target."""


def labels_told(said: Said) -> dict[str, set[str]]:
    """Return the metrics that an answer has or will have, each with its labels."""
    found: dict[str, set[str]] = {}
    for name, labels in said.samples:
        found.setdefault(name, set()).update(label for label, _ in labels)
    for instrument in instruments():
        kind = type(instrument).__name__.lower().replace("timer", "histogram")
        for ending in SAMPLES[kind]:
            if instrument.name in said.families:
                more = {"le"} if ending == "_bucket" else set()
                found.setdefault(instrument.name + ending, set()).update({*instrument.labels, *more})
    return found


def wrong_in(expression: str, told: Mapping[str, set[str]]) -> list[str]:
    """Return what an expression names that no answer has."""
    used = used_by(expression)
    known = {**told, **PROMETHEUS}
    wrong = [name for name in used.labels if name not in known]
    for name, labels in used.labels.items():
        wrong += [f"{name}{{{label}}}" for label in labels - known.get(name, labels)]
    everywhere = set().union(*(known.get(name, set()) for name in used.labels))
    return wrong + [f"by ({label})" for label in used.grouped - everywhere - PROMETHEUS["up"]]


@pytest.fixture
def stack(tmp_path: Path, transactional_db: None) -> Iterator[Stack]:
    stack = Stack(tmp_path, GROUNDWORK_METRICS_TOKEN=TOKEN)
    yield stack
    stack.stop()


@pytest.fixture
def told(stack: Stack) -> dict[str, set[str]]:
    stack.start()
    web = said_by(f"{stack.url}/metrics", TOKEN)
    worker = said_by(f"http://127.0.0.1:{stack.health_port}/metrics", TOKEN)
    return {**labels_told(worker), **labels_told(web)}


@pytest.mark.servers
def test_rules_and_dashboard_name_what_real_processes_tell(told: dict[str, set[str]]) -> None:
    expressions = [rule["expr"] for rule in alerts().values()] + [expr for _, expr in panels()]
    assert len(expressions) > 50
    assert [(expression, wrong) for expression in expressions if (wrong := wrong_in(expression, told))] == []
    # Planted: a metric that there isn't, a label that it hasn't, a grouping by none of its labels.
    assert wrong_in("max(groundwork_worker) == 0", told) == ["groundwork_worker"]
    assert wrong_in("groundwork_queue_jobs{tenant='a'} > 1", told) == ["groundwork_queue_jobs{tenant}"]
    assert wrong_in("sum by (model) (groundwork_queue_jobs) > 1", told) == ["by (model)"]
    assert wrong_in("rate(groundwork_jobs_ended[5m]) > 1", told) == ["groundwork_jobs_ended"]
    # What is told and shown nowhere helps nobody.
    shown = {name for expression in expressions for name in used_by(expression).labels}
    families = {
        name.removesuffix("_total").removesuffix("_bucket")
        for name in told
        if not name.endswith(("_sum", "_count", "_created"))
    }
    assert {f for f in families if not any(name.startswith(f) for name in shown)} == set()


def test_each_rule_says_what_happened_and_what_to_do_and_is_told_within_a_minute() -> None:
    for name, rule in alerts().items():
        assert set(rule["annotations"]) == {"summary", "action"}, name
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert pending_s(name) + 2 * 15 <= 60, f"{name}: with two scrapes of 15 seconds"
    page = (ALERTS.parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert [name for name in alerts() if name not in page] == []


def test_dashboard_is_one_of_its_program() -> None:
    board = yaml.safe_load(DASHBOARD.read_text())
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(numbers) == len(set(numbers)) > 30
    places = [tuple(panel["gridPos"][k] for k in "xy") for panel in board["panels"]]
    assert len(places) == len(set(places))
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in board["panels"])


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.mark.servers
def test_dead_worker(cast: Cast, stack: Stack) -> None:
    stack.start_worker()
    worker = stack.worker
    assert worker is not None
    wait_for(lambda: Worker.objects.exists() or worker.poll() is not None)
    assert not crosses("GroundworkNoWorker", of("groundwork_workers")(said_here()))

    def fault() -> None:
        kill_hard(worker.pid)
        Worker.objects.update(seen_at=timezone.now() - timedelta(seconds=31))

    moved("GroundworkWorkerLost", of("groundwork_workers_lost"), fault, also="GroundworkNoWorker")
    assert crosses("GroundworkNoWorker", of("groundwork_workers")(said_here()))
