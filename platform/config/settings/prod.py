"""Settings behind a TLS proxy, as the image runs them. A secret key must be given."""

from config import env
from config.settings.base import *  # noqa: F403

if not env.get("GROUNDWORK_SECRET_KEY"):
    raise env.SettingsError(
        "GROUNDWORK_SECRET_KEY must be set in production. Make one: "
        "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
    )
DEBUG = False
HTTPS: bool = env.get("GROUNDWORK_HTTPS")
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
LANGUAGE_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
STORAGES["staticfiles"] = {  # noqa: F405
    "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
}
SESSION_COOKIE_NAME = "groundwork_session"
