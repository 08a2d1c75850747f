"""Runs the command: in this process, and in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from replaylife.cli import main

FAULT = "finish-donates-full-length"
SHORT = """\
title: One short request
cache: {slots: 4, kv_tokens: 64, ring_length: 4, track_interval: 256}
steps:
  - admit: {request: a, prompt: 4}
  - prefill: {request: a}
  - decode: {request: a, n: 6}
  - finish: {request: a}
  - expect: {tree: [{key: 4, state: 4}, {key: 8, state: 8}]}
"""
FAULTY = SHORT.replace("key: 8, state: 8", "key: 10, state: 8").replace(
    "state: 8}]", "state: 8}], violations: [{invariant: key-matches-state}]"
)


def invoke(*args: str, columns: int = 80) -> Result:
    """Run ``replaylife args`` in this process, no terminal anywhere."""
    return CliRunner().invoke(main, list(args), env={"COLUMNS": str(columns)})


def run(*args: str, columns: int = 80) -> Result:
    """Run ``replaylife run args`` on the ledger alone."""
    return invoke("run", "--backend", "none", *args, columns=columns)


def objects(text: str) -> list[dict[str, Any]]:
    """Parse JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


def spawn(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m replaylife args`` in a process of its own."""
    return python("-m", "replaylife", *args, cwd=cwd, env=env)


def python(
    *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run this Python with ``args``."""
    return subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "80", **(env or {})},
        timeout=120,
        check=False,
    )
