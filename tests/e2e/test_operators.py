"""Experiment with a job of an operator for each trial: the real services and agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kubernetes.api_server import ApiServer, api_server
from tests.support.kubernetes.experiments import agent_node, shape_with_front, wait_until_empty
from tests.support.kubernetes.kubelet import Kubelet
from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.platform_experiments import assert_each_counted_once, write_experiment

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

TIMEOUT_S = 240.0
TRIAL = """\
import pathlib
import time
import nni

while not pathlib.Path("FOLDER/serving").exists():
    time.sleep(0.02)
nni.report_final_result(nni.get_next_parameter()["x"])
"""
SERVICE = """\
  platform: frameworkcontroller
  kubeconfig: {kubeconfig}
  reuseMode: false
  configPath: template.yml
"""
TEMPLATE = """\
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
spec:
  taskRoles:
    - name: worker
      taskNumber: 1
      frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: 1}
      task:
        pod:
          spec:
            containers: [{name: main, image: registry.example.org/trials:1}]
    - name: ps
      taskNumber: 1
      frameworkAttemptCompletionPolicy: {minFailedTaskCount: 1, minSucceededTaskCount: -1}
      task:
        pod:
          spec:
            containers:
              - name: main
                image: registry.example.org/trials:1
                command: [sh, -c, "touch FOLDER/serving; exec sleep 1000000"]
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


@pytest.mark.timeout(420)
def test_each_trial_has_a_framework_of_the_template_and_nothing_is_left(
    shape: LocalShape, server: ApiServer, node: Kubelet, tmp_path: Path
) -> None:
    nnictl = Nnictl(shape)
    service = SERVICE.format(kubeconfig=server.kubeconfig(tmp_path))
    trial, template = (text.replace("FOLDER", str(tmp_path)) for text in (TRIAL, TEMPLATE))
    config = write_experiment(tmp_path / "code", trial, service)
    (tmp_path / "code" / "template.yml").write_text(template)

    experiment = nnictl.create(config)
    shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    nnictl("stop", experiment)
    wait_until_empty(server, "frameworks", TIMEOUT_S)
    assert "password" not in node.log()
