"""What this process may use of its machine: memory and processors, within the limits of its control groups (Linux).

A container sees the whole machine's memory and processors; its limits are in files of cgroups(7), in two layouts. Version
2 has one tree of groups, version 1 one for each kind of limit. A limit of any group above holds too. Where a container
has the path of its group on the host, but only its own part of the tree, the groups that aren't there are passed over.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def memory_bytes(root: Path = ROOT) -> int:
    """Return how many bytes of memory this process and its siblings may use.

    Args:
        root: folder that has ``proc`` and ``sys``.
    """
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for group in _groups(root, "memory"):
        found += _numbers(group / "memory.max") + _numbers(group / "memory.limit_in_bytes")
    return min(found)


def cores(root: Path = ROOT) -> int:
    """Return how many processors this process may use, at least one; a part of one counts as one.

    Args:
        root: folder that has ``proc`` and ``sys``.
    """
    found = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    for group in _groups(root, "cpu"):
        quota = _numbers(group / "cpu.max") or [
            *_numbers(group / "cpu.cfs_quota_us"),
            *_numbers(group / "cpu.cfs_period_us"),
        ]
        if len(quota) == 2 and min(quota) > 0:
            found.append(math.ceil(quota[0] / quota[1]))
    return min(found)


def _groups(root: Path, kind: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups that can limit a kind, with all above them."""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            mount = root / "sys/fs/cgroup"
            if kinds:  # version 1; in version 2 there is one tree, of no kind
                if kind not in kinds.split(","):
                    continue
                mount /= kind
            inner = Path(path.lstrip("/"))
            yield from (mount / part for part in (inner, *inner.parents) if ".." not in part.parts)


def _numbers(file: Path) -> list[int]:
    """Return the whole numbers of a limit's file; none where there is no file, or no limit ("max")."""
    with contextlib.suppress(OSError, ValueError):
        return [int(word) for word in file.read_text().split()]
    return []
