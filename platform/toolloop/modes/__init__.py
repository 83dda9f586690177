"""Ways to an answer that are fixed beforehand: one search, or a plan and its steps. Providers around a provider.

A mode starts no loop of its own. What it does next follows from the history it is given, so journal, resume, limits, stop,
approvals and usage stay the loop's.
"""

from toolloop.modes.attached import AttachedProvider
from toolloop.modes.plan import PLAN_TOOL, Plan, PlanStep, plan_read, plan_tool
from toolloop.modes.planned import PlannedProvider
from toolloop.modes.quick import QuickProvider

__all__ = [
    "PLAN_TOOL",
    "AttachedProvider",
    "Plan",
    "PlanStep",
    "PlannedProvider",
    "QuickProvider",
    "plan_read",
    "plan_tool",
]
