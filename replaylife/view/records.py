"""A run as plain data, for programs: one JSON object per step, per expectation, and per verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from replaylife.lifecycle.scenario.player import Failed, Held, Outcome, Played
from replaylife.lifecycle.snapshot import Measurement, NodeView, RequestView, Snapshot, Violation
from replaylife.view.heading import Run
from replaylife.view.requests import slot_of
from replaylife.view.verdict import Summary


def json_line(record: Mapping[str, Any]) -> str:
    """Return one line of JSON; numbers that JSON has no words for become text (``nan``, ``inf``)."""
    return json.dumps(_finite(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


def outcome_record(run: Run, outcome: Outcome) -> dict[str, Any]:
    """Return a step, or a judged expectation, as plain data."""
    where = {"scenario": run.name, "line": outcome.line}
    match outcome:
        case Played():
            return {"type": "step", **where, **_step(outcome)}
        case Failed(_, message):
            return {"type": "expectation", **where, "held": False, "message": message}
        case Held():
            return {"type": "expectation", **where, "held": True}


def _step(played: Played) -> dict[str, Any]:
    t = played.transition
    return {
        "step": t.step,
        "action": _tagged(t.action),
        "events": [_tagged(event) for event in t.events],
        "requests": [_request(t.after, request) for request in t.after.requests],
        "tree": [_node(t.after, node) for node in t.after.nodes],
        "free_slots": list(t.after.free_slots),
        "kv_free": t.after.kv_free,
        "exceeded": [_measurement(m) for m in t.after.measurements if m.exceeded],
        "violations": [_violation(violation, violation in played.fresh) for violation in played.violations],
    }


def _tagged(value: Any) -> dict[str, Any]:
    return {"kind": type(value).__name__, **asdict(value)}


def _request(snapshot: Snapshot, request: RequestView) -> dict[str, Any]:
    slot = slot_of(snapshot, request.slot)
    return {
        "id": request.id,
        "phase": request.phase,
        "scheduled": request.scheduled,
        "executed": request.executed,
        "committed": request.committed,
        "cached": request.cached,
        "slot": request.slot,
        "pending_cow": request.pending_cow,
        "temporal": None if slot is None else slot.temporal.length,
        "conv": None if slot is None else slot.conv.length,
        "write_pos": None if slot is None else slot.write_pos,
    }


def _node(snapshot: Snapshot, node: NodeView) -> dict[str, Any]:
    slot = slot_of(snapshot, node.state)
    return {
        "id": node.id,
        "parent": node.parent,
        "key": node.key.length,
        "slot": node.state,
        "temporal": None if slot is None else slot.temporal.length,
        "conv": None if slot is None else slot.conv.length,
        "state_lock": node.state_lock,
        "kv_lock": node.kv_lock,
    }


def _measurement(measurement: Measurement) -> dict[str, Any]:
    return asdict(measurement)


def _violation(violation: Violation, fresh: bool) -> dict[str, Any]:
    return {**asdict(violation), "fresh": fresh}


def verdict_record(summary: Summary) -> dict[str, Any]:
    """Return what a run came to as plain data."""
    run, verdict = summary.run, summary.verdict
    unexpected = verdict.unexpected
    return {
        "type": "verdict",
        "scenario": run.name,
        "path": run.path,
        "held": verdict.held,
        "ending": summary.ending,
        "exit_code": summary.exit_code,
        "engine": {
            "name": run.engine,
            "backend": run.config.backend,
            "device": run.config.device,
            "model": asdict(run.config.model),
            "cache": asdict(run.config.cache),
        },
        "faults": run.faults,
        "steps": verdict.steps,
        "checks": verdict.steps * summary.num_invariants,
        "measured": summary.tally.measured,
        "launches": dict(summary.launches),
        "violations": [
            {"step": step, "expected_by_scenario": (step, v) not in unexpected, **asdict(v)}
            for step, v in verdict.violations
        ],
        "failures": [{"line": failed.line, "message": failed.message} for failed in verdict.failures],
        "reproduce": list(run.command),
    }


def error_record(name: str, problems: Sequence[tuple[int, str]], message: str) -> dict[str, Any]:
    """Return why a scenario could not be played, as plain data."""
    listed = [{"line": line, "message": text} for line, text in problems]
    return {"type": "error", "scenario": name, "exit_code": 2, "message": message, "problems": listed}
