"""An experiment in jobs of a real Slurm, as a user runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.nnictl import Nnictl
from tests.support.platform_experiments import (
    assert_each_counted_once,
    first_log,
    write_experiment,
)
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
SERVICE = """\
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
    home = tmp_path / "nni of the cluster"
    service = SERVICE.format(home=home, configuration=cluster.configuration)
    config = write_experiment(tmp_path / "code", TRIAL, service)

    experiment = nnictl.create(config)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    assert "job nni-" in first_log(nnictl, experiment)
    nnictl("stop", experiment)
    until(lambda: not cluster.output("squeue", "--noheader"), TIMEOUT_S, "the end of the jobs")
    until(lambda: not home.exists(), TIMEOUT_S, "a clean folder")
