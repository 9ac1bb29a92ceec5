"""An experiment in actors of a real Ray cluster, as a user runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.nnictl import Nnictl
from tests.support.ray_servers import ray_cluster
from tests.support.wait import until

__all__ = ["local_shape"]  # a fixture

ray: Any = pytest.importorskip("ray", reason="the platform ray is an extra")
TIMEOUT_S = 240.0
TRIAL = """\
import os
import nni

parameters = nni.get_next_parameter()
print("threads", os.environ["OMP_NUM_THREADS"], flush=True)
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
  platform: ray
  address: {address}
  maxAgents: 2
  home: {home}
"""


@pytest.fixture
def cluster() -> Iterator[Any]:
    with ray_cluster() as one:
        yield one


@pytest.mark.timeout(540)
def test_experiment_runs_in_actors_of_ray(
    local_shape: LocalShape, cluster: Any, tmp_path: Path
) -> None:
    nnictl = Nnictl(local_shape)
    code, home = tmp_path / "code", tmp_path / "nni of the cluster"
    code.mkdir()
    (code / "trial.py").write_text(TRIAL)
    config = code / "config.yml"
    config.write_text(CONFIG.format(code=code, home=home, address=cluster.address))

    experiment = nnictl.create(config)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    trials = nnictl.trials(experiment)
    assert sorted(trial["finalMetricData"][0]["data"] for trial in trials) == [1, 2, 3, 4]
    output = nnictl("log", "trial", experiment, "-T", trials[0]["trialJobId"], "--follow").stdout
    assert "threads 1" in output
    nnictl("stop", experiment)
    until(
        lambda: not ray.util.list_named_actors(all_namespaces=True),
        TIMEOUT_S,
        "the end of the actors",
    )
    until(lambda: not home.exists(), TIMEOUT_S, "a clean folder")
