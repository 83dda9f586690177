"""Settings of `make run`: one machine, plain HTTP on loopback."""

from config.settings.base import *  # noqa: F403

SESSION_COOKIE_NAME = "groundwork_session"
CSRF_COOKIE_NAME = "groundwork_csrf"
