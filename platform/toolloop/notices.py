"""What the loop itself says to a model: why calls were not run, and what is asked of it now."""

from __future__ import annotations

from toolloop.calls import Refusal

CUT_OFF = Refusal(
    "truncated",
    "This call was not run: your turn was cut off before it was complete, so its arguments cannot be trusted. "
    "Call again with shorter arguments, or in several smaller calls.",
)
NO_MORE_CALLS = Refusal("limit", "This call was not run: the run has met its limit.")
FINAL_NOTICE = (
    "[This run has met its limit ({detail}). No more tools can be called. Answer now with what you have found, and say "
    "what is missing.]"
)
REPAIR_NOTICE = "[Your answer does not have the form asked for: {problem}\nAnswer again, with the JSON only.]"
