"""Settings of the server of test_waiting_routes.py: the tests', which forget every key, with the gate's key again."""

import os

from config.settings.test import *  # noqa: F403

os.environ["OPENAI_API_KEY"] = "gate"
