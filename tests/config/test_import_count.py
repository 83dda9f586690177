"""What starts import, counted and not timed: each module costs every command, every start and every forked test process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from config.up import ROOT

OWN_AFTER_SETUP = 940
OWN_BEFORE_FORKS = 1490
ALL_OF_UP = 255
"""Of the process that starts the others, most of them Python's own."""
_PROBE = f"""
import json, sys
sys.path[:0] = {[str(ROOT), str(ROOT / "platform")]!r}
def seen():
    return sorted(sys.modules)
import config.up
up = seen()
import django
django.setup()
setup = seen()
from config import zygote
from importlib import import_module
for name in zygote._IMPORTED:
    import_module(name)
print(json.dumps([up, setup, seen()]))
"""


def test_starts_import_what_they_need():
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    up, setup, forked = json.loads(done.stdout)

    assert len(up) <= ALL_OF_UP, "the process that imports for the others starts only after these"
    assert not {"django", "psycopg"} & set(up)
    not_for_commands = {"django.test", "requests", "rest_framework.views", "drf_spectacular.openapi"}
    assert not not_for_commands & set(setup)
    assert [m for m in _own(setup) if m.endswith((".tasks", ".urls", ".api"))] == []
    assert len(_own(setup)) <= OWN_AFTER_SETUP
    assert "apps.conversations.answering.tasks" in forked, "the first job would wait for it"
    assert "apps.evaluations.experiments.api" in forked, "the first request would wait for it"
    assert len(_own(forked)) <= OWN_BEFORE_FORKS


def _own(modules: list[str]) -> list[str]:
    ours = {path.parent.name for path in (ROOT / "platform").glob("*/__init__.py")} | {"apps"}
    return [name for name in modules if name.partition(".")[0] in ours]
