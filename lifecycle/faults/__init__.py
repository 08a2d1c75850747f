"""The catalogue of seeded faults: each replaces one method, and each must be caught.

A new fault is a file in this folder and its name in ``FILES``.
"""

from replaylife.lifecycle.catalogue import instances
from replaylife.lifecycle.faults.fault import Fault

FILES = (
    "donation",
    "copies",
    "cursor",
    "kernel",
    "ownership",
    "tree",
    "steps",
    "speculation",
    "host",
    "lengths",
    "batches",
    "budget",
)
FAULTS: dict[str, Fault] = {fault.id: fault for fault in instances(__name__, FILES, Fault)}

__all__ = ["FAULTS", "Fault"]
