"""Memory and processors within the limits of a container, in both layouts of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from basics.machine import cores, memory_bytes

GB = 10**9
V1 = "12:cpu,cpuacct:{0}\n4:memory:{0}\n0::{0}\n"
NO_LIMIT = "9223372036854771712\n"  # what version 1 shows for none


@pytest.mark.parametrize(
    ("groups", "files", "memory", "processors"),
    [
        pytest.param(None, {}, 64, 8, id="without control groups"),
        pytest.param(
            "0::/\n", {"memory.max": "max\n", "cpu.max": "max 100000\n"}, 64, 8, id="without limits"
        ),
        pytest.param(
            "0::/\n", {"memory.max": f"{2 * GB}\n", "cpu.max": "150000 100000\n"}, 2, 2, id="container"
        ),
        pytest.param(
            "0::/pods.slice/pod/box\n",
            {
                "pods.slice/pod/box/memory.max": "max\n",
                "pods.slice/pod/memory.max": f"{3 * GB}\n",
                "pods.slice/memory.max": f"{9 * GB}\n",
                "pods.slice/pod/box/cpu.max": "400000 100000\n",
                "pods.slice/cpu.max": "50000 100000\n",
            },
            3,
            1,
            id="limits of groups above",
        ),
        pytest.param(
            V1.format("/docker/0a1b"),
            {
                "memory/docker/0a1b/memory.limit_in_bytes": f"{GB}\n",
                "memory/memory.limit_in_bytes": NO_LIMIT,
                "cpu/docker/0a1b/cpu.cfs_quota_us": "200000\n",
                "cpu/docker/0a1b/cpu.cfs_period_us": "100000\n",
            },
            1,
            2,
            id="version 1",
        ),
        pytest.param(
            V1.format("/docker/0a1b"),
            {
                "memory/memory.limit_in_bytes": f"{GB}\n",
                "cpu/cpu.cfs_quota_us": "-1\n",
                "cpu/cpu.cfs_period_us": "100000\n",
            },
            1,
            8,
            id="version 1, the container's own part of the tree",
        ),
        pytest.param(
            "0::/../../box\n", {"memory.max": f"{2 * GB}\n"}, 2, 8, id="a path from outside the namespace"
        ),
    ],
)
def test_limits_of_control_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: str | None,
    files: dict[str, str],
    memory: int,
    processors: int,
) -> None:
    pages = {"SC_PHYS_PAGES": 64 * GB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    if groups is not None:
        files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()} | {"proc/self/cgroup": groups}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert (memory_bytes(tmp_path), cores(tmp_path)) == (memory * GB, processors)
