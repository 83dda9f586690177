"""Rewrite the asserts of all test modules once for a whole run, and not once in each of its processes.

pytest keeps a rewritten module beside its source, but the processes of a run begin together: in a new checkout each
of them would rewrite every module (12 s of the processor). Here each rewrites its share before it collects; a module
that another process has not reached by then is rewritten as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_share(config: pytest.Config) -> None:
    """Write what is missing of this process' share; nothing when the process is alone."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    for source in sorted(_modules(config))[number :: worker["workercount"]]:
        folder = rewrite.get_cache_dir(source)
        kept = folder / (source.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(source, kept) is None and rewrite.try_makedirs(folder):
            state = config.stash[rewrite.assertstate_key]
            digest, code = rewrite._rewrite_test(source, config)
            rewrite._write_pyc(state, code, digest, kept)


def _modules(config: pytest.Config) -> Iterator[Path]:
    """Find the modules of the folders that the run was given."""
    for argument in config.args:
        folder = config.invocation_params.dir / argument
        if folder.is_dir():
            yield from folder.rglob("test_*.py")
