"""Start, carry out, stop and end runs, and ask a model one question. The only caller of the loop."""

from runs.services.asking import loop_ask
from runs.services.completions import (
    COMPLETION_LIMITS,
    Completion,
    CompletionFailed,
    Question,
    completion_prepare,
    completion_run,
)
from runs.services.execute import run_execute
from runs.services.later import Later
from runs.services.lifecycle import (
    orphans_end,
    run_abandon,
    run_create,
    run_new,
    run_stop,
    runs_bereave,
    runs_stop,
)
from runs.services.metered import usage_record
from runs.services.recording import AnsweredCall, AnsweredRun, runs_record
from runs.services.replay import Replay, ReplayRow, run_replay
from runs.services.subagents import helper_ask

__all__ = [
    "COMPLETION_LIMITS",
    "AnsweredCall",
    "AnsweredRun",
    "Completion",
    "CompletionFailed",
    "Later",
    "Question",
    "Replay",
    "ReplayRow",
    "completion_prepare",
    "completion_run",
    "helper_ask",
    "loop_ask",
    "orphans_end",
    "run_abandon",
    "run_create",
    "run_execute",
    "run_new",
    "run_replay",
    "run_stop",
    "runs_bereave",
    "runs_record",
    "runs_stop",
    "usage_record",
]
