"""Settings of the servers of test_live.py: the tests', and an app that brings two tools."""

from config.settings.test import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.tools.mcp_server.extra.ExtraConfig"]  # noqa: F405
