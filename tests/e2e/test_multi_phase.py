"""A trial that asks for parameters again: the documented branch for old multi-phase scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.experiments import write_experiment
from tests.support.nnictl import Nnictl, nnictl, shared_shape

__all__ = ["nnictl", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(240)

LOOP = """\
import nni

seen = []
while (parameters := nni.get_next_parameter()) is not None:
    seen.append(parameters)
assert nni.get_next_parameter() is None
nni.report_final_result(len(seen))
"""


@pytest.mark.claim("hpo", 3)
@pytest.mark.parametrize("command", ["MULTI_PHASE=true python3 trial.py", "python3 trial.py"])
@pytest.mark.parametrize("name", ["TPE", "GridSearch"])
def test_asking_until_there_are_no_more_ends(
    nnictl: Nnictl, tmp_path: Path, name: str, command: str
) -> None:
    points = {"x": {"_type": "choice", "_value": [1, 2, 3]}}
    config = write_experiment(
        tmp_path,
        LOOP,
        trialCommand=command,
        tuner={"name": name},
        searchSpace=points,
        maxTrialNumber=3,
    )

    experiment = nnictl.create(config)
    nnictl.shape.wait_for_state(experiment, "DONE")

    trials = nnictl.trials(experiment)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 3
