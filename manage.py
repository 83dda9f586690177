#!/usr/bin/env python
"""Entry point of every command: `python manage.py help`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> None:
    sys.path.insert(1, str(ROOT / "platform"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    if sys.argv[1:2] == ["up"]:  # supervises from outside: small, at once, and without a database
        from config.up import main as up

        sys.exit(up(sys.argv[2:]))
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError:
        sys.exit(
            "This Python does not have Groundwork's packages. Run `make install`, then `.venv/bin/python manage.py ...`."
        )

    from config.env import SettingsError

    try:
        execute_from_command_line(sys.argv)
    except SettingsError as error:
        sys.exit(f"Settings: {error}")


if __name__ == "__main__":
    main()
