"""The interpreter's worker processes: one pool per process, made when first needed, hardened, and closed with care.

Three facts about pydantic-monty 1.4.0 shape this file. A process that forks after its pool was used gets a child whose
pool hangs for ever: the pool is kept by process id, and a fork replaces it. An interpreter that ends right after a pool
was closed is aborted in one of six cases: ``close`` waits a little, and runs at exit. The binary is otherwise looked up
in the environment: its path is pinned.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolloop.errors import ConfigurationError

if TYPE_CHECKING:
    import pydantic_monty

logger = logging.getLogger(__name__)

VERSION = "1.4.0"
_SETTLE_S = 0.25  # Measured: without a pause 15 to 22 % of exits abort, with 0.2 s none of 40.
_CHECKOUT_S = 5.0
_REQUEST_S = 10.0
_ADDRESS_SPACE = 1024 * 1024 * 1024


class ForkedPool(ConfigurationError):
    """This process was forked after code had been run in its parent, and the pool cannot work in it."""

    code = "forked_pool"


class _Pools:
    """What this process owns."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid = 0
        self.pool: Any = None
        self.entered = False
        self.folder = ""  # Holds the script that starts workers.
        self.script = ""
        self.used_before_fork = False


_state = _Pools()


def _after_fork() -> None:
    # The child must not touch the parent's pool, not even to drop it: its threads do not exist here. So it is kept
    # alive, unused, and the child is told why it cannot run code.
    global _state
    inherited, _state = _state, _Pools()
    if inherited.pool is not None or inherited.used_before_fork:
        _state.used_before_fork = True
        _keep.append(inherited)


_keep: list[_Pools] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def monty() -> Any:
    """Import the interpreter's client.

    Raises:
        ConfigurationError: it is not installed, or of a version that was not tested.
    """
    try:
        import pydantic_monty as module
    except ImportError as error:
        raise ConfigurationError(
            f"Code mode needs the package pydantic-monty: pip install pydantic-monty=={VERSION}"
        ) from error
    if module.__version__ != VERSION:
        raise ConfigurationError(
            f"Code mode was tested with pydantic-monty {VERSION}, installed is {module.__version__}: "
            f"pip install pydantic-monty=={VERSION}"
        )
    return module


async def pool_open(processes: int = 2) -> pydantic_monty.AsyncMonty:
    """Return this process's pool, made at the first call.

    Args:
        processes: most workers of the pool; counts only when it is made.

    Raises:
        ConfigurationError: the interpreter is not installed.
        ForkedPool: the process was forked from one that had run code.
    """
    if _state.entered and _state.pid == os.getpid():
        return _state.pool  # type: ignore[no-any-return]
    if _state.used_before_fork:
        raise ForkedPool(
            "This process was forked after its parent had run code, and the interpreter's pool does not survive a fork. "
            "Don't run code before forking (no preload), or start workers with spawn."
        )
    module = monty()
    binary = await asyncio.to_thread(_binary)
    pool = module.AsyncMonty(
        binary_path=binary,
        min_processes=1,
        max_processes=processes,
        checkout_timeout=_CHECKOUT_S,
        request_timeout=_REQUEST_S,
        max_checkouts_per_worker=50,
    )
    await pool.__aenter__()
    with _state.lock:
        spare = pool if _state.entered else None  # Another task or thread was faster.
        if spare is None:
            _state.pool, _state.entered, _state.pid = pool, True, os.getpid()
    if spare is not None:
        await spare.__aexit__(None, None, None)
    return _state.pool  # type: ignore[no-any-return]


async def pool_close() -> None:
    """End the workers; a later program starts new ones. Call it before the process ends, if there is a place for it."""
    with _state.lock:
        pool, _state.pool, _state.entered = _state.pool, None, False
        folder, _state.folder, _state.script = _state.folder, "", ""
    if pool is not None:
        await pool.__aexit__(None, None, None)
        await asyncio.sleep(_SETTLE_S)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _at_exit() -> None:
    if _state.pool is None or _state.pid != os.getpid():
        return
    begun = time.monotonic()
    try:
        asyncio.run(asyncio.wait_for(pool_close(), 3.0))
    except Exception:  # the process is ending; there is nobody to tell but the log
        logger.exception("the code pool was not closed cleanly")
    left = _SETTLE_S - (time.monotonic() - begun)
    if left > 0:
        time.sleep(left)


atexit.register(_at_exit)


def _binary() -> str:
    """Return the worker's path, or that of a script that starts it with fewer rights."""
    scripts = Path(sysconfig.get_path("scripts"))
    found = next(
        (str(p) for p in (scripts / "monty", Path(sys.executable).parent / "monty") if p.is_file()), ""
    )
    found = found or shutil.which("monty") or ""
    if not found:
        raise ConfigurationError(
            f"The interpreter's program 'monty' is missing: pip install --force-reinstall pydantic-monty-runtime=={VERSION}"
        )
    with _state.lock:
        if _state.script:
            return _state.script
        return _script(os.path.abspath(found))


def _script(found: str) -> str:
    command = _confined(found)
    if not command:
        return found
    folder = tempfile.mkdtemp(prefix="groundwork-code-")
    os.chmod(folder, 0o755)  # noqa: S103 - the worker's own user must read it; it holds no secret
    script = Path(folder) / "worker"
    script.write_text(f'#!/bin/sh\ncd /\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o755)
    _state.folder, _state.script = folder, str(script)
    return _state.script


def _confined(binary: str) -> list[str]:
    """Return the command that starts the worker with as few rights as this machine lets us take from it."""
    setpriv, prlimit = shutil.which("setpriv"), shutil.which("prlimit")
    if not sys.platform.startswith("linux") or not setpriv or not prlimit:
        return []
    limits = [prlimit, f"--as={_ADDRESS_SPACE}", "--core=0", "--nofile=64"]
    nobody = [
        setpriv,
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    plain = [setpriv, "--no-new-privs"]
    for rights in (nobody, plain):
        command = [*rights, *limits, binary]
        if rights is nobody and os.geteuid() != 0:
            continue
        if _works([*command, "--version"]):
            return command
    return []


def _works(command: list[str]) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=10, check=False, cwd="/", env={})
        return done.returncode == 0
    return False
