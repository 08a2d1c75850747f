"""How many distinct states a second and core the explorer sees, all invariants on, and what one weighs.

Run: OMP_NUM_THREADS=1 python bench/explore_speed.py

CPU time of one process, best of several runs. bench/ledger_speed.py says what the bare engine does on the
same machine: a search adds going back, fingerprints and counts to every checked action.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import time
import tracemalloc

from replaylife.lifecycle.explore.found import Budget, Found
from replaylife.lifecycle.explore.loader import shipped_scope
from replaylife.lifecycle.explore.schema import Scope
from replaylife.lifecycle.explore.search import Search

SCOPES = ("no-buffer-medium", "extra-buffer-medium", "extra-buffer-lazy-medium", "align-medium")


def timed(scope: Scope, states: int) -> tuple[Found, float]:
    search = Search(scope, budget=Budget(states=states))
    begun = time.process_time()
    found = search.run()
    seconds = time.process_time() - begun
    assert not found.troubles
    return found, seconds


def weight(scope: Scope, states: int) -> float:
    """Bytes of memory a state, the frontier's worlds included, at the end of a search."""
    search = Search(scope, budget=Budget(states=states))
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    found = search.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / found.states


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    print("scope                        states  transitions   states/s  transitions/s  bytes/state")
    for name in SCOPES:
        scope = shipped_scope(name)
        runs = [timed(scope, args.states) for _ in range(args.repeats)]
        found, seconds = min(runs, key=lambda run: run[1])
        print(
            f"{name:26} {found.states:8,} {found.transitions:12,} {found.states / seconds:10,.0f} "
            f"{found.transitions / seconds:14,.0f} {weight(scope, args.states):12,.0f}"
        )
        if args.profile:
            profiler = cProfile.Profile()
            profiler.runcall(timed, scope, args.states)
            pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)
    print(f"largest resident size {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
