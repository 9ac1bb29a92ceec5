"""TERM to all processes of an installation: what a machine does that shuts down."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
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


SHUTDOWN = (signal.SIGTERM,)
END_OF_SESSION = (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
"""What systemd sends to the processes of a session's scope, one after the other."""


def shut_down(shape: LocalShape, signals: Sequence[signal.Signals]) -> None:
    """Send signals to all processes of the installation, deepest first; wait for their ends."""
    pids = [process.pid for process in tree(int(shape.endpoint()["pid"]))]
    for number in signals:
        for pid in reversed(pids):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    until(lambda: not list(alive(pids)), 60, "the end of all processes")


@pytest.mark.timeout(240)  # three starts of all services
@pytest.mark.parametrize(
    ("script", "command", "signals"),
    [
        (WAITING, "python3 trial.py", SHUTDOWN),
        (HANDLING, "python3 trial.py", SHUTDOWN),
        (WAITING, "true && python3 trial.py", SHUTDOWN),
        (WAITING, "python3 trial.py", END_OF_SESSION),
    ],
    ids=["warm", "handles TERM", "shell", "end of a session"],
)
def test_experiment_goes_on_after_a_shutdown(
    local_shape: LocalShape,
    tmp_path: Path,
    script: str,
    command: str,
    signals: Sequence[signal.Signals],
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
        shut_down(local_shape, signals)
        local_shape.start()
        assert local_shape.state(experiment) == "RUNNING"
        until(running, 60, "three running trials after the shutdown")

    gate.touch()
    local_shape.wait_for(experiment, "DONE")
    trials = local_shape.trials(experiment)
    assert {trial["status"] for trial in trials} == {"SUCCEEDED"}
    assert len(trials) == TRIALS
    assert before <= {trial["trialJobId"] for trial in trials}
