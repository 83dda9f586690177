"""The test settings plus this folder as an app, whose ``tasks`` a real worker process runs."""

import os

from config.settings.test import *  # noqa: F403

INSTALLED_APPS += ["tests.jobs.apps.JobTestsConfig"]  # noqa: F405
if _limit := os.environ.get("TESTS_TASK_TIMEOUT"):
    INGEST_SECONDS, Q_CLUSTER["timeout"] = 0, int(_limit)  # noqa: F405
