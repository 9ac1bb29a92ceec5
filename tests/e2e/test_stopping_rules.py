"""Rules that end a search count its whole history, also over a stop and a resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni.experiment import Experiment
from tests.support import wait
from tests.support.experiments import write_experiment
from tests.support.nnictl import Nnictl, nnictl, services_here, shared_shape
from tests.support.ports import free_port

__all__ = ["nnictl", "services_here", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(240)

BEST_FIRST = """\
import pathlib
import time

import nni

nni.get_next_parameter()
number = nni.get_sequence_id()
while number == 4 and not pathlib.Path("go").exists():
    time.sleep(0.02)
nni.report_final_result(1.0 if number == 0 else 0.5)
"""


def succeeded(experiment: Experiment) -> int:
    return sum(job.status == "SUCCEEDED" for job in experiment.list_trial_jobs())


def test_no_improvement_is_counted_on_after_a_resume(nnictl: Nnictl, tmp_path: Path) -> None:
    config = write_experiment(
        tmp_path,
        BEST_FIRST,
        search={"stop": {"noImprovement": 6}},
        trialConcurrency=1,
        maxTrialNumber=40,
    )
    first_port, second_port = free_port(), free_port()
    nnictl.create(config, port=first_port)
    experiment = Experiment.connect(first_port)
    wait.until(lambda: succeeded(experiment) == 4, 60, "4 results")
    experiment.stop()
    (tmp_path / "go").touch()

    nnictl("resume", experiment.id, "--port", second_port)
    experiment = Experiment.connect(second_port)
    assert experiment.wait_completion()

    # The first trial is the best; three others came before the stop, and three more after it.
    assert succeeded(experiment) == 7
    assert nnictl.status(experiment.id)["errors"] == []
