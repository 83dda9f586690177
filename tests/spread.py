"""How the tests of a run are spread over its processes: a module at a time, those that last longest first.

pytest-xdist hands out single tests: the rows that a module makes once are then made in every process, and its books
grow with each test (20 s of processor time of 14,000). A module whose tests share what only one process may have says
so with ``xdist_group``, as ever.
"""

from __future__ import annotations

from collections import Counter

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

BROWSER = "browser"
CONCURRENCY = "concurrency"
SERVED = (BROWSER, CONCURRENCY)
"""Folders whose tests share one running product."""
LOOKS = "test_accessibility", "test_admin_accessibility", "test_collections", "test_every_page", "test_stream"
"""Half of the browser's tests by time: a second process with servers of its own runs them."""
LONGEST = (
    "servers of browser: looks",
    "servers of browser",
    "servers of concurrency",
    "tests/permissions/test_matrix.py",
    "tests/permissions/test_admin_matrix.py",
    "servers of config",
    "servers of jobs",
    "tests/tools/toolset/test_enforcement.py",
    "tests/permissions/test_admin_reach.py",
    "tests/backups/test_restore.py",
    "servers of web",
    "servers of conversations/openai",
    "tests/deploy/test_monitoring.py",
    "tests/backups/test_create.py",
    "servers of tenancy",
    "tests/runs/test_crash.py",
    "tests/collections/pipeline/test_scans.py",
    "fuzz",
    "servers of tools/mcp_server",
    "servers of clients",
    "servers of collections/files",
    "servers of .",
    "servers of conversations/chat",
    "servers of toolloop/mcp",
    "servers of api",
    "servers of batches",
    "servers of datasets/generation",
)
"""Begun in this order; after them come the others, those with the most tests first. Only how long a run lasts hangs on it."""


def group_of(folder: str, module: str) -> str:
    """Return the group of a module that starts servers.

    Args:
        folder: below tests/, "." for that itself.
        module: its file's name without the suffix.
    """
    if folder == BROWSER and module in LOOKS:
        return f"servers of {folder}: looks"
    return f"servers of {folder}"


def unit_of(nodeid: str) -> str:
    """Return what a test is handed out with: its group, which xdist writes behind its name, or its module."""
    _, is_grouped, group = nodeid.rpartition("@")
    if is_grouped and "]" not in group:  # a parameter may hold the sign as well
        return group
    return nodeid.partition("::")[0]


def order(items: list[pytest.Item]) -> None:
    """Bring a process' tests into the order in which they are handed out."""
    sizes = Counter(unit_of(item.nodeid) for item in items)
    first = {unit: place for place, unit in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, int, str]:
        unit = unit_of(item.nodeid)
        return first.get(unit, len(first)), -sizes[unit], unit

    items.sort(key=place)  # keeps the order within


class Spread(LoadGroupScheduling):  # type: ignore[misc]
    """Hands out units, and forgets what is done: xdist counts it all again after each test."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the processes have seen to it
        self._numbers: dict[str, int] = {}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a test, and hand out the next unit when a process has next to nothing left."""
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
