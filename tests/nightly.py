"""How much of its long walks a run does: `make test-nightly` all, `make test` what is said where they are, `make test-fast` least."""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("NIGHTLY") == "1"
"""What a day's run takes a fixed sample of is then done whole."""
FAST = os.environ.get("FAST") == "1"
"""Of what a day's run walks whole, a fixed sample is enough: whoever changes a line waits for the answer."""
