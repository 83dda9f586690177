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

    from django.db import OperationalError

    from config.env import SettingsError

    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except SettingsError as error:
        sys.exit(f"Settings: {error}")
    except OperationalError:
        if not (told := database_missing()):
            raise
        sys.exit(told)
    except BrokenPipeError:
        if not reader_left():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still buffered
        sys.exit(128 + signal.SIGPIPE)


def database_missing() -> str:
    """Return what to do when the embedded database that the settings name doesn't run; "" when it does, or is another's."""
    from django.conf import settings

    from config import env
    from config.embedded.state import is_alive, read_state

    if env.get("DATABASE_URL") or (read_state(settings.DATA_DIR) and is_alive(settings.DATA_DIR)):
        return ""
    return (
        f"The database in {settings.DATA_DIR} isn't running. Start Groundwork (`make run`). If it runs in another folder "
        "(`--data-dir`), set GROUNDWORK_DATA_DIR to that in .env, so that every command finds it."
    )


def reader_left() -> bool:
    """Return whether nobody reads the output any more, as after `| head`: then there is nothing to tell, and nobody to tell it."""
    poller = select.poll()
    poller.register(sys.stdout.fileno(), 0)
    return any(what & select.POLLERR for _, what in poller.poll(0))


if __name__ == "__main__":
    main()
