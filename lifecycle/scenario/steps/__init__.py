"""The steps of the scenario language.

A new step is a file in this folder and its name in ``FILES``.
"""

from replaylife.lifecycle.catalogue import classes
from replaylife.lifecycle.scenario.steps.base import StepBody

FILES = (
    "admit",
    "prefill",
    "decode",
    "batch",
    "verify",
    "draft",
    "schedule",
    "execute",
    "commit",
    "overlap",
    "checkpoint",
    "finish",
    "fold",
    "retract",
    "resume",
    "retry",
    "abort",
    "evict",
    "match",
    "copies",
    "leave",
    "expect",
)
STEPS: dict[str, type[StepBody]] = {kind.key: kind for kind in classes(__name__, FILES, StepBody)}

__all__ = ["STEPS", "StepBody"]
