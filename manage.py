#!/usr/bin/env python
"""Entry point of every command: `python manage.py help`."""

import gc
import os
import select
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> None:
    sys.path.insert(1, str(ROOT / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    if sys.argv[1:2] == ["up"]:  # supervises from outside: small, at once, and without a database
        from config.up import main as up

        sys.exit(up(sys.argv[2:]))
    # Nothing that an import makes is garbage, and looking for some again and again takes a seventh of each start. When
    # all is imported, config.apps turns the collector on.
    gc.disable()
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError:
        sys.exit(
            "This Python does not have Groundwork's packages. Run `make install`, then `.venv/bin/python manage.py ...`."
        )

    from config.env import SettingsError

    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except SettingsError as error:
        sys.exit(f"Settings: {error}")
    except BrokenPipeError:
        if not reader_left():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
        sys.exit(128 + signal.SIGPIPE)


def reader_left() -> bool:
    """Return whether nobody reads the output any more, as after `| head`: then there is nothing to tell, and nobody to tell it."""
    poller = select.poll()
    poller.register(sys.stdout.fileno(), 0)
    return any(what & select.POLLERR for _, what in poller.poll(0))


if __name__ == "__main__":
    main()
