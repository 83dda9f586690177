"""Run what reads somebody's file in a process of its own, with little time and memory and nothing to steal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from basics.errors import DomainError
from basics.texts import Told
from basics.texts import gettext as _
from tenancy.database.waiting import connections_let_go

_ROOT = Path(__file__).resolve().parents[3]
_MAX_ANSWER = 64_000_000
_SPARE_S = 5


def run_limited(
    action: str,
    request: Mapping[str, Any],
    *,
    seconds: int,
    memory_bytes: int,
    descriptors: Sequence[int] = (),
) -> Any:
    """Let the child do one thing and return its answer.

    Args:
        action: one of the child's.
        request: JSON values.
        seconds: processor time; a little more passes on the clock.
        memory_bytes: address space.
        descriptors: open files that the child inherits under the same numbers.

    Raises:
        DomainError: ``work_too_large`` when it took too long or too much memory, ``work_failed`` when it broke down, or
            what the child itself refused.
    """
    body = json.dumps(
        {
            **request,
            "action": action,
            "seconds": seconds,
            "memory_bytes": memory_bytes,
            "parent_pid": os.getpid(),
        }
    ).encode()
    with tempfile.TemporaryDirectory(prefix="files-") as folder:
        connections_let_go()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "apps.collections.tree.child"],
                input=body,
                capture_output=True,
                timeout=seconds + _SPARE_S,
                pass_fds=tuple(descriptors),
                cwd=folder,
                env=_environment(folder),
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _too_large() from error
    if done.returncode != 0 or len(done.stdout) > _MAX_ANSWER:
        if done.returncode < 0 or b"MemoryError" in done.stderr:
            raise _too_large()
        raise DomainError(
            "work_failed",
            _("This could not be read: it is damaged, or not the kind of file it claims to be."),
            status=422,
        )
    answer = json.loads(done.stdout)
    if "refused" in answer:
        raise DomainError("work_refused", Told.of(answer["refused"]), status=422)
    return answer["answer"]


def _environment(folder: str) -> dict[str, str]:
    """Give the child what Python needs and nothing else: no keys, no database address, no one's configuration."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join((str(_ROOT), str(_ROOT / "platform"))),
        "PYTHONIOENCODING": "utf-8",
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _too_large() -> DomainError:
    return DomainError(
        "work_too_large",
        _(
            "This took too long or too much memory and was stopped. Ask for less: fewer files, or a smaller part."
        ),
        status=422,
    )
