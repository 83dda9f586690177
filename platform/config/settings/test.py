"""Settings of the tests: the real database and queue, fast password hashing, nothing kept."""

import os
import tempfile
import zlib
from pathlib import Path

# A folder for each checkout: two that test at once must not share databases.
_checkout = f"groundwork-tests-{zlib.crc32(__file__.encode()):08x}"
os.environ.setdefault("GROUNDWORK_DATA_DIR", str(Path(tempfile.gettempdir()) / _checkout))
os.environ.setdefault("GROUNDWORK_SECRET_KEY", "only-for-tests-only-for-tests-only-for-tests-only")
for _name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "XAI_API_KEY"):
    os.environ.pop(_name, None)  # a test never reaches a paid model

from config.settings.base import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
STRICT_WAITS = True
OCR_NICE = BACKUP_NICE = 0  # what waits for it would wait as long as other tests keep the processors busy

# Static files straight from static/ and the apps, as in development.
WHITENOISE_USE_FINDERS = True
STATIC_ROOT = None  # type: ignore[assignment]
