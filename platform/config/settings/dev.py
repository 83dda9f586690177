"""Settings of `make run`: one machine, plain HTTP on loopback."""

from config.settings.base import *  # noqa: F403

STYLE_GUIDE = True
SESSION_COOKIE_NAME = "groundwork_session"
CSRF_COOKIE_NAME = "groundwork_csrf"

# Static files straight from static/ and the apps, without a collectstatic that could be forgotten.
WHITENOISE_USE_FINDERS = True
STATIC_ROOT = None  # type: ignore[assignment]
