"""The test settings plus this folder as an app, whose ``tasks`` a real worker process runs."""

from config.settings.test import *  # noqa: F403

INSTALLED_APPS += ["tests.jobs.apps.JobTestsConfig"]  # noqa: F405
