"""An experiment in jobs of a real Slurm, as a user runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.nnictl import Nnictl
from tests.support.slurm_cluster import SlurmCluster, slurm_cluster
from tests.support.wait import until

__all__ = ["local_shape"]  # a fixture

TIMEOUT_S = 240.0
TRIAL = """\
import os
import nni

parameters = nni.get_next_parameter()
print("job", os.environ["SLURM_JOB_NAME"], flush=True)
nni.report_final_result(parameters["x"])
"""
CONFIG = """\
searchSpace: {{x: {{_type: choice, _value: [1, 2, 3, 4]}}}}
trialCommand: python3 trial.py
trialCodeDirectory: {code}
trialConcurrency: 2
maxTrialNumber: 4
tuner: {{name: GridSearch}}
trainingService:
  platform: slurm
  memory: 100M
  maxAgents: 2
  home: {home}
  slurmConf: {configuration}
"""


@pytest.fixture
def cluster() -> Iterator[SlurmCluster]:
    with slurm_cluster() as one:
        yield one


@pytest.mark.timeout(420)
def test_experiment_runs_in_jobs_of_slurm(
    local_shape: LocalShape, cluster: SlurmCluster, tmp_path: Path
) -> None:
    nnictl = Nnictl(local_shape)
    code, home = tmp_path / "code", tmp_path / "nni of the cluster"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
    config = code / "config.yml"
    config.write_text(CONFIG.format(code=code, home=home, configuration=cluster.configuration))

    experiment = nnictl.create(config)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    trials = nnictl.trials(experiment)
    assert sorted(trial["finalMetricData"][0]["data"] for trial in trials) == [1, 2, 3, 4]
    output = nnictl("log", "trial", experiment, "-T", trials[0]["trialJobId"], "--follow").stdout
    assert "job nni-" in output
    nnictl("stop", experiment)
    until(lambda: not cluster.output("squeue", "--noheader"), TIMEOUT_S, "the end of the jobs")
    until(lambda: not home.exists(), TIMEOUT_S, "a clean folder")
