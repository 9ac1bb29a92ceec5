"""Experiments in pods: the real services and agents over a stand-in for the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes.api_server import ApiServer, api_server
from tests.support.kubernetes.experiments import agent_node, shape_with_front, wait_until_empty
from tests.support.kubernetes.kubelet import Kubelet
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.platform_experiments import (
    assert_each_counted_once,
    first_log,
    write_experiment,
)
from tests.support.wait import until

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

TIMEOUT_S = 240.0
TRIAL = """\
import os
import pathlib
import time
import nni

parameters = nni.get_next_parameter()
while pathlib.Path("{folder}/hold").exists():
    time.sleep(0.02)
print("home", os.environ["HOME"], os.environ["WORD"], flush=True)
nni.report_final_result(parameters["x"])
"""
SERVICE = """\
  platform: kubernetes
  kubeconfig: {kubeconfig}
  image: registry.example.org/trials:1
  slots: 2
  setupLines: [export WORD=helped]
"""


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server() as one:
        yield one


@pytest.fixture
def node(server: ApiServer, tmp_path: Path) -> Iterator[Kubelet]:
    with agent_node(server, tmp_path) as one:
        yield one


@pytest.fixture
def shape(private_home: Path) -> Iterator[LocalShape]:
    with shape_with_front(private_home) as one:
        yield one


@pytest.fixture
def config(server: ApiServer, tmp_path: Path) -> Path:
    service = SERVICE.format(kubeconfig=server.kubeconfig(tmp_path))
    return write_experiment(tmp_path / "code", TRIAL.format(folder=tmp_path), service)


@pytest.mark.timeout(420)
def test_experiment_runs_in_pods_and_leaves_nothing(
    shape: LocalShape, server: ApiServer, node: Kubelet, config: Path
) -> None:
    nnictl = Nnictl(shape)

    experiment = nnictl.create(config)
    shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    assert "volumes/nni-home helped" in first_log(nnictl, experiment)
    nnictl("stop", experiment)
    wait_until_empty(server, "jobs", TIMEOUT_S)
    assert "password" not in node.log()


@pytest.mark.timeout(420)
@pytest.mark.usefixtures("node")
def test_each_trial_counts_once_though_a_pod_is_evicted_and_the_fleet_is_killed(
    shape: LocalShape, server: ApiServer, config: Path, tmp_path: Path
) -> None:
    nnictl = Nnictl(shape)
    hold = tmp_path / "hold"
    hold.touch()
    experiment = nnictl.create(config)

    def running() -> int:
        return sum(trial["status"] == "RUNNING" for trial in nnictl.trials(experiment))

    until(lambda: running() == 2, TIMEOUT_S, "two trials")

    (pod,) = server.objects.list("pods")[0]
    shape.kill("trial-runner.fleet")
    server.objects.delete("pods", pod["metadata"]["name"])
    hold.unlink()
    shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
