"""Whether this run is `make test-nightly`: what a day's run takes a fixed sample of is then done whole."""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("NIGHTLY") == "1"
