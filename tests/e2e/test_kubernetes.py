"""Experiments in pods: the real services and agents over a stand-in for the cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes.api_server import ApiServer, api_server
from tests.support.kubernetes.kubelet import Kubelet, kubelet
from tests.support.local_shape import LocalShape, running_shape
from tests.support.nnictl import Nnictl
from tests.support.ports import free_port
from tests.support.servers import require_binary
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
CONFIG = """\
searchSpace: {{x: {{_type: choice, _value: [1, 2, 3, 4]}}}}
trialCommand: python3 trial.py
trialCodeDirectory: {folder}
trialConcurrency: 2
maxTrialNumber: 4
tuner: {{name: GridSearch}}
trainingService:
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
    pods = tmp_path / "pods"
    pods.mkdir()
    beside = Path(sys.executable).parent  # in place of the image with the agent
    with kubelet(server.port, pods, f"{beside}{os.pathsep}/usr/bin{os.pathsep}/bin") as one:
        yield one


@pytest.fixture
def shape(private_home: Path) -> Iterator[LocalShape]:
    require_binary("nats-server")
    front = {"NNI_FRONT_HOST": "127.0.0.1", "NNI_FRONT_PORT": str(free_port())}
    with running_shape(private_home, **front) as one:
        yield one


@pytest.fixture
def config(server: ApiServer, tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "trial.py").write_text(TRIAL.format(folder=tmp_path))
    path = folder / "config.yml"
    path.write_text(CONFIG.format(folder=folder, kubeconfig=server.kubeconfig(tmp_path)))
    return path


@pytest.mark.timeout(420)
def test_experiment_runs_in_pods_and_leaves_nothing(
    shape: LocalShape, server: ApiServer, node: Kubelet, config: Path
) -> None:
    nnictl = Nnictl(shape)

    experiment = nnictl.create(config)
    shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    trials = nnictl.trials(experiment)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 4
    assert sorted(trial["finalMetricData"][0]["data"] for trial in trials) == [1, 2, 3, 4]
    output = nnictl("log", "trial", experiment, "-T", trials[0]["trialJobId"], "--follow").stdout
    assert "volumes/nni-home helped" in output
    nnictl("stop", experiment)
    kinds = ("jobs", "pods", "secrets")
    until(
        lambda: not any(server.objects.list(kind)[0] for kind in kinds),
        TIMEOUT_S,
        "an empty namespace",
    )
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

    trials = nnictl.trials(experiment)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 4
    assert sorted(trial["finalMetricData"][0]["data"] for trial in trials) == [1, 2, 3, 4]
