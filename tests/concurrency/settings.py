"""The test settings plus this folder as an app, which can hold a job open where a test wants to kill it."""

from config.settings.test import *  # noqa: F403

INSTALLED_APPS += ["tests.concurrency.apps.ConcurrencyTestsConfig"]  # noqa: F405
