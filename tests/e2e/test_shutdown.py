"""TERM to all processes of an installation: what a machine does that shuts down."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.experiments import write_experiment
from tests.support.local_shape import LocalShape, local_shape
from tests.support.processes import alive, tree
from tests.support.wait import until

__all__ = ["local_shape"]  # a fixture

WAITING = """
import pathlib, time
import nni
nni.get_next_parameter()
while not pathlib.Path({gate!r}).exists():
    time.sleep(0.05)
nni.report_final_result(1.0)
"""
HANDLING = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" + WAITING
TRIALS = 6


def shut_down(shape: LocalShape) -> None:
    """Send TERM to all processes of the installation, deepest first; wait for their ends."""
    pids = [process.pid for process in tree(int(shape.endpoint()["pid"]))]
    for pid in reversed(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    until(lambda: not list(alive(pids)), 60, "the end of all processes")


@pytest.mark.timeout(240)  # three starts of all services
@pytest.mark.parametrize(
    ("script", "command"),
    [
        (WAITING, "python3 trial.py"),
        (HANDLING, "python3 trial.py"),
        (WAITING, "true && python3 trial.py"),
    ],
    ids=["warm", "handles TERM", "shell"],
)
def test_experiment_goes_on_after_a_shutdown(
    local_shape: LocalShape, tmp_path: Path, script: str, command: str
) -> None:
    gate = tmp_path / "gate"
    config = write_experiment(
        tmp_path / "code",
        script.format(gate=str(gate)),
        maxTrialNumber=TRIALS,
        trialConcurrency=3,
        trialCommand=command,
        maxTrialRetries=0,
    )
    experiment = local_shape.create(config)

    def running() -> bool:
        trials = local_shape.trials(experiment)
        return [trial["status"] for trial in trials].count("RUNNING") == 3

    until(running, 60, "three running trials")
    before = {trial["trialJobId"] for trial in local_shape.trials(experiment)}

    # maxTrialRetries is 0: a loss that counted would fail the trials.
    for _ in range(2):
        shut_down(local_shape)
        local_shape.start()
        assert local_shape.state(experiment) == "RUNNING"
        until(running, 60, "three running trials after the shutdown")

    gate.touch()
    local_shape.wait_for(experiment, "DONE")
    trials = local_shape.trials(experiment)
    assert {trial["status"] for trial in trials} == {"SUCCEEDED"}
    assert len(trials) == TRIALS
    assert before <= {trial["trialJobId"] for trial in trials}
