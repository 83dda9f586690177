"""How the tests of a run are spread over its processes: a module at a time, those that last longest first.

pytest-xdist hands out single tests: the rows that a module makes once are then made in every process, and its books
grow with each test (20 s of processor time of 14,000). A module is one process' alone, and so is a folder whose
tests share servers.
"""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

BROWSER = "tests/browser"
CONCURRENCY = "tests/concurrency"
SERVED = (BROWSER, CONCURRENCY)
"""Folders whose tests share one running product."""
SITES = (*SERVED, "tests/api", "tests/conversations/openai")
"""Those, and folders whose tests share a server."""
ALIKE = ("tests/jobs",)
"""Folders whose tests start servers of their own, forked from what imported the product once (``tests.nursery``)."""
TOGETHER = (*SITES, *ALIKE)
"""Folders that one process runs whole: each process would start their product, or import it, again."""
SECOND = (
    "test_accessibility",
    "test_admin_accessibility",
    "test_approvals",
    "test_collections",
    "test_conversation_list",
    "test_every_page",
    "test_stream",
)
"""Half of the browser's tests by time: a second process with a product of its own runs them."""
LONGEST = (
    "tests/browser: second",
    "tests/permissions/test_matrix.py",
    "tests/browser",
    "tests/concurrency",
    "tests/permissions/test_admin_matrix.py",
    "tests/jobs",
    "tests/config/test_embedded_postgres.py",
    "tests/collections/ingestion/test_ocr.py",
    "tests/conversations/openai",
    "tests/api",
    "tests/runs/test_crash.py",
    "tests/collections/pipeline/test_no_silence.py",
    "tests/backups/test_restore.py",
    "tests/config/test_up_supervisor.py",
    "tests/tools/toolset/test_enforcement.py",
    "tests/backups/test_create.py",
    "tests/tenancy/test_replica.py",
    "tests/collections/files/test_git.py",
    "tests/config/test_up_forked.py",
    "tests/web/test_waiting_routes.py",
    "tests/config/test_up_real.py",
    "tests/permissions/test_admin_reach.py",
    "tests/collections/pipeline/test_scans.py",
    "tests/tenancy/test_from_empty.py",
    "tests/erasure/test_retention.py",
)
"""Begun in this order; after them come the others, those with the most tests first. Only how long a run lasts hangs on
it: all that took 30 s of one. To name what took 15 s too, twice as many, would make one of 18 minutes a second shorter."""


def unit_of(nodeid: str) -> str:
    """Return what a test is handed out with: its module, or the folder that stays together.

    Not by marks: pytest-xdist writes a mark's group behind a test's name, and stopped to with pytest 9.2, unseen.
    """
    module = nodeid.partition("::")[0]
    folder, _, name = module.rpartition("/")
    if folder not in TOGETHER:
        return module
    return f"{folder}: second" if folder == BROWSER and name.removesuffix(".py") in SECOND else folder


def order(items: list[pytest.Item]) -> None:
    """Bring a process' tests into the order in which they are handed out."""
    units = [unit_of(item.nodeid) for item in items]
    sizes = Counter(units)
    first = {unit: place for place, unit in enumerate(LONGEST)}
    places = {unit: (first.get(unit, len(first)), -size, unit) for unit, size in sizes.items()}
    pairs = sorted(zip(units, items, strict=True), key=lambda pair: places[pair[0]])  # keeps the order within
    items[:] = [item for _, item in pairs]


class Spread(LoadFileScheduling):  # type: ignore[misc]
    """Hands out modules, and forgets what is done: xdist counts it all again after each test."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the processes have seen to it
        self._numbers: dict[str, int] = {}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test, and hand out the next module when a process has next to nothing left."""
        nodeid = self.registered_collections[node][item_index]
        units = self.assigned_work[node]
        unit = self._split_scope(nodeid)
        del units[unit][nodeid]
        if not units[unit]:
            del units[unit]
        self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._numbers:
            self._numbers = {
                nodeid: number for number, nodeid in enumerate(self.registered_collections[node])
            }
        name, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][name] = unit
        node.send_runtest_some([self._numbers[nodeid] for nodeid in unit])
