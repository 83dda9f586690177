"""Settings of the server of test_busy_database.py: the tests', with one database connection and little patience."""

from config.settings.test import *  # noqa: F403

DATABASES["default"]["OPTIONS"]["pool"] |= {"max_size": 1, "timeout": 1}  # noqa: F405
