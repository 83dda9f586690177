"""Can Groundwork be installed and started where no network is: from the wheelhouse, in a network namespace of its own?

    make wheelhouse; python benchmarks/air_gapped.py [--wheelhouse var/wheelhouse]

Needs Linux, the command `unshare`, and the right to make a network namespace (root). Inside it only loopback is up: a
connection to anywhere else fails, which is tried first. Everything happens in a temporary folder: a copy of the tracked
files, a virtual environment, a data directory. It passes when every package is installed with --no-index, the embedder's
model is built, and `manage.py up` is ready.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import ROOT, write_result

_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


def loopback_up() -> None:
    """Switch loopback on, which is off in a new namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        fcntl.ioctl(line, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def is_cut_off() -> bool:
    """Tell whether no address but loopback's can be reached: 192.0.2.1 is one for documentation, RFC 5737."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.settimeout(5)
        return line.connect_ex(("192.0.2.1", 443)) == errno.ENETUNREACH


def inside(wheelhouse: Path) -> None:
    """Install and start; writes the result."""
    loopback_up()
    assert is_cut_off(), "this namespace has a network"
    with tempfile.TemporaryDirectory(prefix="groundwork-air-gapped-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # the database's user passes through
        code = folder / "code"
        for path in subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split("\0"):
            if path and (ROOT / path).is_file():
                (code / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, code / path, follow_symlinks=False)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GROUNDWORK_", "DATABASE_", "PIP_"))}
        began = time.perf_counter()
        python = folder / "venv" / "bin" / "python"
        run(folder, env, sys.executable, "-m", "venv", str(folder / "venv"))
        install = ("install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
        run(
            code, env, str(python), "-m", "pip", *install, "--no-index", "--find-links", str(wheelhouse), "-r",
            "requirements/base.txt",
        )  # fmt: skip
        installed = time.perf_counter()
        run(code, env, str(python), "manage.py", "embedder_prepare")
        ready(code, env, python)
        packages = len(list((folder / "venv").glob("lib/python*/site-packages/*.dist-info")))
    result = {
        "packages": packages,
        "install_s": installed - began,
        "ready": True,
    }
    print(write_result("air_gapped", result).read_text())


def run(folder: Path, env: dict[str, str], *command: str) -> None:
    """Run a command, and stop with what it said if it fails."""
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def ready(code: Path, env: dict[str, str], python: Path) -> None:
    """Start it, wait until it says that it is ready, and stop it."""
    process = subprocess.Popen(
        [str(python), "manage.py", "up", "--port", "8000", "--data-dir", str(code.parent / "data")],
        cwd=code,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    try:
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            if "Groundwork is ready" in line:
                return
        raise SystemExit("it did not become ready:\n" + "".join(said[-60:]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--wheelhouse", type=Path, default=ROOT / "var" / "wheelhouse")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    wheelhouse = options.wheelhouse.resolve()
    if not any(wheelhouse.glob("*.whl")):
        raise SystemExit(f"{wheelhouse} has no packages. Run: make wheelhouse")
    if options.inside:
        inside(wheelhouse)
        return
    command = ["unshare", "--net", sys.executable, __file__, "--inside", "--wheelhouse", str(wheelhouse)]
    raise SystemExit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
