"""How long it takes to open a trace of 100,000 steps at its last violation; and to turn a page in a browser.

Run: OMP_NUM_THREADS=1 python bench/view_speed.py [--steps N]
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from replaylife.lifecycle.config import CacheConfig, EngineConfig
from replaylife.lifecycle.factory import EngineFactory
from replaylife.lifecycle.trace.lines import Header
from replaylife.lifecycle.trace.writer import TraceWriter
from replaylife.lifecycle.wander.walk import Walk
from replaylife.lifecycle.wander.wanderer import Habits

FAULT = "finish-donates-full-length"
SMALL = EngineConfig(cache=CacheConfig(slots=10, kv_tokens=96, ring_length=4, track_interval=6))
SERVER = EngineConfig(cache=CacheConfig(slots=64, kv_tokens=16_384, ring_length=16, track_interval=64))
LONG = Habits(max_length=400, text_tokens=64, own_tokens=16, grid=16)
TURNED = """
const began = performance.now();
for (let i = 0; i < 200; i += 1) {
  document.body.dispatchEvent(new KeyboardEvent("keydown", {key: i < 100 ? "l" : "h", bubbles: true}));
  document.body.offsetHeight;  // the layout counts too
}
return (performance.now() - began) / 200;
"""


class Case(NamedTuple):
    name: str
    config: EngineConfig
    habits: Habits | None


def record(case: Case, path: Path, steps: int) -> int:
    """Write a random walk, a fault seeded in its last tenth alone; return how many steps broke something."""
    clean, faulty = (EngineFactory(case.config, faults) for faults in ((), (FAULT,)))
    walk = Walk(clean)
    header = Header(
        tool=f"replaylife {version('replaylife')}", scenario=case.name, capabilities=walk.engine.capabilities,
        config=case.config,
    )  # fmt: skip
    seen: set[tuple[str, str]] = set()
    violating = 0
    with TraceWriter(path, header) as writer:
        for taken in walk.wander(1, steps * 9 // 10, case.habits):
            writer.step(taken.transition)
        numbered = walk.taken
        again = Walk(faulty)  # a second life of the same pool size, so that the steps go on
        before = taken.transition.after
        for taken in again.wander(2, steps - numbered, case.habits):
            t = taken.transition
            t = type(t)(t.step + numbered, before, t.action, t.events, t.after)
            before = t.after
            fresh = [v for v in taken.violations if (v.invariant, v.subject) not in seen]
            seen |= {(v.invariant, v.subject) for v in fresh}
            violating += bool(fresh)
            writer.step(t, fresh)
        writer.finish()
    return violating


def seconds(*args: str) -> str:
    """Wall and processor time of the whole command, from starting Python to its end; the best of three."""
    times = []
    for _ in range(3):
        began, used = time.perf_counter(), _used()
        subprocess.run([sys.executable, "-m", "replaylife", *args], check=True, capture_output=True)
        times.append((time.perf_counter() - began, _used() - used))
    wall, processor = (min(column) for column in zip(*times, strict=True))
    return f"{wall:6.2f} s ({processor:.2f} s)"


def _used() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def page_turn(page: Path) -> str:
    """Milliseconds to show one step in a real browser, layout included."""
    browsers = _browsers()
    if browsers is None or browsers.MISSING:
        return "no browser"
    with browsers.opened() as browser:
        browser.open(page, "#step=1")
        return f"{browser.run(TURNED):.1f} ms"


def _browsers() -> Any:
    """The tests' driver of a browser: this bench runs in a checkout."""
    path = Path(__file__).parents[1] / "tests" / "replaylife" / "browser.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("browser", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    steps = parser.parse_args().steps
    print("wall time, processor time in parentheses")
    heads = f"{'at last violation':>20} {'HTML page':>20} {'one page turn':>14}"
    print(f"{'trace':8} {'steps':>8} {'MB':>6} {'violating':>9} {heads}")
    for case in (Case("small", SMALL, None), Case("server", SERVER, LONG)):
        with tempfile.TemporaryDirectory() as folder:
            path, page = Path(folder) / "t.jsonl", Path(folder) / "t.html"
            violating = record(case, path, steps)
            opened = seconds("view", str(path), "--at", "last-violation")
            built = seconds("view", str(path), "--html", str(page), "--force")
            size = path.stat().st_size / 1e6
            print(
                f"{case.name:8} {steps:8,} {size:6.0f} {violating:9,} "
                f"{opened:>20} {built:>20} {page_turn(page):>14}",
                flush=True,
            )


if __name__ == "__main__":
    main()
