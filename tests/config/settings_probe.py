"""Start the product's settings many times in one process: each case in a fork of its own, which has imported nothing yet.

Reads JSON from standard input: a list of ``{"env": {...}, "module": name, "show": expression}``. Writes a list of
``{"value": ...}`` or ``{"error": text}`` (a ``SettingsError``), in the same order.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

import django.conf

import toolloop.models
import toolloop.providers.registry
from config.env import SettingsError

# What settings import, once for all cases: none of it reads the environment when it is imported.
for _module in ("structlog.dev", "structlog.stdlib", "config.embedded.state", "config.secrets", "zoneinfo"):
    importlib.import_module(_module)
for _provider in ("openai", "anthropic", "google", "xai"):
    toolloop.providers.registry.environment_settings(_provider, {})
toolloop.providers.registry.configured_models({})


def case_run(case: dict[str, Any]) -> dict[str, Any]:
    os.environ.update(case["env"])
    os.environ["DJANGO_SETTINGS_MODULE"] = case["module"]
    try:
        names = {
            "settings": django.conf.settings,
            "environ": os.environ,
            "provider": lambda name: toolloop.providers.registry.environment_settings(name, os.environ),
            "models": lambda: [info.id for info in toolloop.providers.registry.configured_models(os.environ)],
        }
        _ = django.conf.settings.DEBUG  # Django reads them at the first look.
        return {"value": eval(case["show"], names)}  # noqa: S307 - expressions of our own test
    except SettingsError as error:
        return {"error": str(error)}


def main() -> None:
    found = []
    for case in json.load(sys.stdin):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as out:
                try:
                    json.dump(case_run(case), out, default=str)
                except BaseException as error:  # noqa: BLE001 - told to the parent, then over
                    json.dump({"error": f"{type(error).__name__}: {error}"}, out)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            found.append(json.load(answer))
        os.waitpid(child, 0)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
