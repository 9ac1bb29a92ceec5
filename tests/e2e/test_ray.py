"""An experiment in actors of a real Ray cluster, as a user runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_shape import LocalShape, local_shape
from tests.support.nnictl import Nnictl
from tests.support.platform_experiments import (
    assert_each_counted_once,
    first_log,
    write_experiment,
)
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
SERVICE = """\
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
    home = tmp_path / "nni of the cluster"
    service = SERVICE.format(home=home, address=cluster.address)
    config = write_experiment(tmp_path / "code", TRIAL, service)

    experiment = nnictl.create(config)
    local_shape.wait_for(experiment, "DONE", "ERROR", timeout_s=TIMEOUT_S)

    assert_each_counted_once(nnictl, experiment)
    assert "threads 1" in first_log(nnictl, experiment)
    nnictl("stop", experiment)
    until(
        lambda: not ray.util.list_named_actors(all_namespaces=True),
        TIMEOUT_S,
        "the end of the actors",
    )
    until(lambda: not home.exists(), TIMEOUT_S, "a clean folder")
