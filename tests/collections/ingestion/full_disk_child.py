"""A stand-in for the reader child whose libraries find no space for their temporary files."""

from __future__ import annotations

import errno
import os
import sys


def main() -> None:
    """Read the request and end as Python does."""
    sys.stdin.buffer.readline()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/x")


if __name__ == "__main__":
    main()
