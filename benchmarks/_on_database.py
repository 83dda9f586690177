"""Run a benchmark that needs a migrated database with one of its own: python -m benchmarks._on_database NAME [ARGUMENT ...]."""

from __future__ import annotations

import subprocess
import sys

from benchmarks._stack import database


def main() -> int:
    """Run it, and return its exit status."""
    name, *arguments = sys.argv[1:]
    with database():  # DATABASE_URL names it
        return subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", *arguments], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
