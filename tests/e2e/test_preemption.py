"""Agents that end again and again: trials with checkpoints go on where they were."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.wait import until

__all__ = ["local_shape"]  # a fixture

TRIALS: Final = 3
STEPS: Final = 6
TIMEOUT_S: Final = 120.0
TRIAL: Final = """\
import os, pathlib, time
import nni

nni.get_next_parameter()
gate = pathlib.Path(os.environ["NNI_CODE_DIR"], "gate")
output = pathlib.Path(os.environ["NNI_OUTPUT_DIR"])
file = nni.checkpoint_directory() / "step"
done = int(file.read_text()) if file.exists() else 0
for step in range(done + 1, int(os.environ["STEPS"]) + 1):
    with (output / "steps").open("a") as steps:
        steps.write(f"{step}\\n")
    file.write_text(str(step))
    assert nni.save_checkpoint(step=step)
    (output / "reached.new").write_text(f"{step} {os.getpid()}")
    (output / "reached.new").replace(output / "reached")
    file.write_text("half")
    while int(gate.read_text()) < step:
        time.sleep(0.02)
nni.report_final_result(step)
"""


class Preempted:
    """Experiment whose trials wait after each step until a gate lets them pass."""

    def __init__(self, shape: LocalShape, folder: Path) -> None:
        self.shape = shape
        self.folder = folder
        (folder / "trial.py").write_text(TRIAL)
        self.open_gate(0)
        config = folder / "config.json"
        config.write_text(
            json.dumps(
                {
                    "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
                    "trialCommand": f"STEPS={STEPS} python3 trial.py",
                    "trialCodeDirectory": str(folder),
                    "trialConcurrency": TRIALS,
                    "maxTrialNumber": TRIALS,
                    "maxTrialRetries": 0,
                    "tuner": {"name": "Random", "classArgs": {"seed": 0}},
                    "trainingService": {"platform": "local"},
                }
            )
        )
        self.experiment = shape.create(config)

    def open_gate(self, step: int) -> None:
        draft = self.folder / "gate.new"
        draft.write_text(str(step))
        draft.replace(self.folder / "gate")

    def folders(self) -> list[Path]:
        return sorted((self.shape.root / self.experiment / "trials").glob("*"))

    def wait_for_step(self, step: int) -> list[int]:
        """Wait until all trials have saved a step; return the ids of their processes."""

        def reached() -> list[int]:
            files = [one / "reached" for one in self.folders()]
            words = [one.read_text().split() for one in files if one.exists()]
            done = [int(pid) for number, pid in words if number == str(step)]
            return done if len(done) == TRIALS else []

        return until(reached, TIMEOUT_S, f"step {step} of all trials")

    def end_agent(self, number: signal.Signals, trials: list[int]) -> None:
        """End the agent, which the supervisor starts again; return when its trials are gone."""
        os.kill(self.shape.pids()["trial-runner"], number)
        until(lambda: not any(map(is_alive, trials)), TIMEOUT_S, "the end of the trials")


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one without a parent that waits for it does not."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.timeout(300)
def test_trials_of_agents_that_end_go_on_and_no_step_is_done_again(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    trials = Preempted(local_shape, tmp_path)

    for step in range(1, STEPS):
        pids = trials.wait_for_step(step)
        trials.end_agent(signal.SIGTERM if step % 2 else signal.SIGKILL, pids)
        trials.open_gate(step)
    trials.wait_for_step(STEPS)
    trials.open_gate(STEPS)
    local_shape.wait_for_state(trials.experiment, "DONE")

    found = local_shape.trials(trials.experiment)
    assert Counter(one["status"] for one in found) == {"SUCCEEDED": TRIALS}
    steps = [(one / "steps").read_text().split() for one in trials.folders()]
    assert steps == [[str(step) for step in range(1, STEPS + 1)]] * TRIALS
