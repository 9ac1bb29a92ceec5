"""An experiment in jobs of a real Slurm, here and behind a login node, as a user runs it."""

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
HELD_TRIAL = (
    """\
import pathlib
import time

while pathlib.Path('HOLD').exists():
    time.sleep(0.02)
"""
    + TRIAL
)
SERVICE = """\
  platform: slurm
  memory: 100M
  maxAgents: 2
  home: {home}
  slurmConf: {configuration}
"""


LOGIN = """\
  host: 127.0.0.1
  port: {port}
  user: {user}
  password: {password}
  hostKeyPolicy: accept-new
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


@pytest.mark.timeout(420)
def test_each_trial_counts_once_behind_a_login_node_that_goes_away(
    local_shape: LocalShape, cluster: SlurmCluster, tmp_path: Path
) -> None:
    pytest.importorskip("asyncssh", reason="the extra remote is not installed")
    from tests.support.remote_machines import PASSWORD, USER, Machines

    (tmp_path / "login node").mkdir()
    machines = Machines(tmp_path / "login node")
    machines.start()
    try:
        nnictl = Nnictl(local_shape)
        home, hold = tmp_path / "nni of the cluster", tmp_path / "hold"
        login = LOGIN.format(port=machines.servers[0].port, user=USER, password=PASSWORD)
        service = SERVICE.format(home=home, configuration=cluster.configuration) + login
        hold.touch()

        experiment = nnictl.create(
            write_experiment(tmp_path / "code", HELD_TRIAL.replace("HOLD", str(hold)), service)
        )
        until(lambda: running(nnictl, experiment) == 2, TIMEOUT_S, "two trials")
        machines.servers[0].kill()  # and with it the relay
        local_shape.kill("trial-runner.fleet")
        machines.servers[0].start()
        hold.unlink()
        local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

        assert_each_counted_once(nnictl, experiment)
        assert "job nni-" in first_log(nnictl, experiment)
        nnictl("stop", experiment)
        until(lambda: not cluster.output("squeue", "--noheader"), TIMEOUT_S, "the end of the jobs")
        until(lambda: not home.exists(), TIMEOUT_S, "a clean folder")
        assert holders(local_shape.folder, PASSWORD) == ["pool-secrets"]
    finally:
        machines.close()


def running(nnictl: Nnictl, experiment: str) -> int:
    """Return how many trials run."""
    return sum(trial["status"] == "RUNNING" for trial in nnictl.trials(experiment))


def holders(folder: Path, secret: str) -> list[str]:
    """Return the names of the folders that have a file with a secret."""
    return [
        path.parent.name
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
