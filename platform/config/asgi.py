"""ASGI entry point: `uvicorn config.asgi:application` with the project root and platform/ on the path."""

import contextvars
import gc
import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
for _entry in (str(_ROOT), str(_ROOT / "platform")):
    if _entry not in sys.path:
        sys.path.insert(1, _entry)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
os.environ.setdefault("DJANGO_DB_POOL", "1")

gc.disable()  # until all is imported: see manage.py

from django.core.signals import request_started  # noqa: E402
from django.db import close_old_connections, reset_queries  # noqa: E402
from django.urls import reverse  # noqa: E402

from jobs.registry import kinds_load  # noqa: E402
from web.departures import departures_noted, holding_noted  # noqa: E402
from web.draining import drain_on_signals  # noqa: E402
from web.handler import application_make  # noqa: E402
from web.lifespan import beginning_with  # noqa: E402


def _watch_files() -> None:
    from blobs.caches import looking_start  # knows models, which are there once Django is set up

    looking_start()


def _tell_alerts() -> None:
    from config.operate.alerting import alerting_start

    alerting_start(tells_away=True)


application = beginning_with(
    holding_noted(departures_noted(application_make())), drain_on_signals, _watch_files, _tell_alerts
)
# All views and kinds of jobs: else the first request would wait for them.
gc.disable()
kinds_load()
# In a context of its own: each of some 150 resolvers leaves a variable in it, and every way between a coroutine and a thread
# looks at all variables of the context that it comes from.
contextvars.copy_context().run(reverse, "account_login")
gc.freeze()
gc.enable()
# A request has a thread of its own, in which nothing is old: what Django tidies before each one costs a way there and back.
request_started.disconnect(close_old_connections)
request_started.disconnect(reset_queries)
