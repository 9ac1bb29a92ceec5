"""How many random schedules does the system survive, and how fast are they simulated?

Run: `python -m tests.benchmarks.bench_simulator [schedules] [first seed]`. Three quarters are of
any kind; a quarter are compared, trial by trial, with the same experiment without noise and faults.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.benchmarks.measure import print_figure, print_header
from tests.support.simulation.scenario import random_scenario
from tests.support.simulation.world import World, check_equal_to_undisturbed

SCHEDULES = 10_000
CHUNK = 250
TARGET = ">= 20000"


@dataclass(slots=True)
class Tally:
    """Totals over some schedules."""

    steps: int = 0
    events: int = 0
    cpu_s: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def simulate_schedules(seeds: Iterable[int]) -> Tally:
    """Simulate one schedule for each seed."""
    tally = Tally()
    began_s = time.process_time()
    for seed in seeds:
        repeatable = seed % 4 == 3
        world = World(random_scenario(seed, repeatable=repeatable))
        try:
            world.run().check()
            if repeatable:
                check_equal_to_undisturbed(world)
        except Exception as error:  # noqa: BLE001 - a crash is a violation, too
            tally.violations.append(f"seed {seed}: {type(error).__name__}: {error}")
        tally.steps += world.time.steps
        tally.events += world.auditor.events
        tally.ends[world.experiment.state.name] += 1
    tally.cpu_s = time.process_time() - began_s
    return tally


def main(arguments: list[str]) -> int:
    """Print the figures; return 1 if a schedule broke an invariant."""
    count = int(arguments[0]) if arguments else SCHEDULES
    first = int(arguments[1]) if len(arguments) > 1 else 0
    print_header(__doc__ or "", seed=first, packages=["protobuf"])
    seeds = range(first, first + count)
    chunks = [seeds[start : start + CHUNK] for start in range(0, count, CHUNK)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tallies = list(pool.map(simulate_schedules, chunks))
    rates = [tally.steps / tally.cpu_s for tally in tallies]
    print_figure("simulated events on one core", rates, "events/s", target=TARGET)
    events = [tally.events / tally.cpu_s for tally in tallies]
    print_figure("of them appended to the log", events, "events/s")
    ends = sum((tally.ends for tally in tallies), Counter[str]())
    violations = [text for tally in tallies for text in tally.violations]
    print(f"   {count} schedules, {sum(t.steps for t in tallies)} events: {dict(ends)}")
    print(f"   {len(violations)} violations (target 0)")
    for text in violations[:10]:
        print(text[:4000])
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
