"""A stand-in for the reader child that misbehaves as asked; tests put it in the real one's place."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from apps.collections.ingestion.frames import encode_frame


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    action = request["action"]
    if action == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "exit":
        sys.stderr.write("something went wrong inside\n")
        sys.stderr.flush()
        os._exit(3)
    elif action == "hog":
        hoard = []
        while True:
            hoard.append(bytearray(os.urandom(1 << 20) * 8))
    elif action == "sleep":
        with open(request["pid_file"], "w") as stream:
            stream.write(str(os.getpid()))
        time.sleep(60)
    elif action == "garbage":
        os.write(1, b"\xff" * 64)
        time.sleep(60)
    elif action == "environment":
        os.write(1, encode_frame({"result": dict(os.environ)}))
    elif action == "silent":
        return


if __name__ == "__main__":
    main()
