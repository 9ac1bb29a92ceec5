"""A short experiment of each algorithm of the registry, by its name, through the real services."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from nni.experiment.config import ExperimentConfig
from nni.experiment.rest import get_json
from nni.hpo.registry.built_in import BUILT_IN
from nni.hpo.registry.entries import AlgorithmEntry
from tests.support.experiments import write_experiment
from tests.support.local_shape import LocalShape
from tests.support.nnictl import services_here, shared_shape

__all__ = ["services_here", "shared_shape"]  # fixtures

pytestmark = pytest.mark.timeout(240)

TRIAL = """\
import pathlib

import nni

parameters = nni.get_next_parameter()
value = (parameters["x"] - 0.3) ** 2 + parameters["layers"]
for step in range(3):
    nni.report_intermediate_result(value + 3 - step)
if folder := parameters.get("save_checkpoint_dir"):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(folder) / "weights").write_text("1")
nni.report_final_result({"default": value, "cost": parameters["layers"]})
"""
OF_A_NETWORK = """\
import json

import nni

nni.report_final_result(len(json.loads(nni.get_next_parameter())["layer_list"]))
"""
LIMIT = 1.5
CONSTRAINTS: dict[str, Any] = {"_constraints": [f"x * layers <= {LIMIT}"]}
"""About half of each space keeps them."""
NUMBERS: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "layers": {"_type": "randint", "_value": [1, 5]},
    **CONSTRAINTS,
}
GRID: dict[str, Any] = {
    "x": {"_type": "quniform", "_value": [0, 1, 0.25]},
    "layers": {"_type": "choice", "_value": [1, 2]},
    **CONSTRAINTS,
}
BATCH: dict[str, Any] = {
    "combine_params": {
        "_type": "choice",
        "_value": [{"x": i / 10, "layers": 2} for i in range(1, 11)],
    },
    **CONSTRAINTS,
}
SPACES: dict[str, dict[str, Any]] = {
    "GridSearch": GRID,
    "BatchTuner": BATCH,
    "NetworkMorphism": {},
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Evolution": {"population_size": 4},
    "MetisTuner": {"cold_start_num": 4},
    "GPTuner": {"cold_start_num": 4},
    "DNGOTuner": {"trials_per_update": 4, "num_epochs_per_training": 20},
    "PBTTuner": {"population_size": 4},
    "NSGA2": {"population_size": 4},
    "CmaEs": {"population_size": 4},
    "Hyperband": {"R": 3, "exec_mode": "serial"},
    "BOHB": {"max_budget": 3},
    "ASHA": {"max_budget": 3},
    "MOASHA": {"max_budget": 3},
    "Curvefitting": {"epoch_num": 3, "start_step": 2},
    "Medianstop": {"start_step": 2},
}
OBJECTIVES = {
    name: [{"metric": "default", "mode": "minimize"}, {"metric": "cost", "mode": "minimize"}]
    for name in ("NSGA2", "MOASHA")
}
TRIALS = 7


def changes(entry: AlgorithmEntry) -> dict[str, Any]:
    """Return the part of the configuration that selects an algorithm."""
    arguments = dict(ARGUMENTS.get(entry.name, {}))
    if entry.name not in OBJECTIVES and entry.name != "Curvefitting":
        arguments["optimize_mode"] = "minimize"
    algorithm: dict[str, Any] = {entry.kind: {"name": entry.name, "classArgs": arguments}}
    others: dict[str, Any] = {"tuner": None} if entry.kind == "advisor" else {}
    objectives = {"objectives": OBJECTIVES[entry.name]} if entry.name in OBJECTIVES else {}
    return {**others, **algorithm, **objectives}


def check_status(shape: LocalShape, experiment: Experiment) -> Any:
    """Return the REST view of an experiment's status."""
    endpoint = shape.endpoint()
    url = f"{endpoint['http']}/api/v1/nni/experiments/{experiment.id}/check-status"
    return get_json(url, endpoint["token"])


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.name)
def test_algorithm_sees_an_experiment_through(
    shared_shape: LocalShape, tmp_path: Path, entry: AlgorithmEntry
) -> None:
    config = write_experiment(
        tmp_path,
        OF_A_NETWORK if entry.name == "NetworkMorphism" else TRIAL,
        searchSpace=SPACES.get(entry.name, NUMBERS),
        maxTrialNumber=TRIALS,
        trialConcurrency=2,
        **changes(entry),
    )
    experiment = Experiment(ExperimentConfig.load(config))
    experiment.start(0)
    try:
        assert experiment.wait_completion()
        trials = experiment.list_trial_jobs()
        errors = check_status(shared_shape, experiment)["errors"]
    finally:
        experiment.stop()

    assert errors == []
    assert len(trials) == TRIALS
    assert {trial.status for trial in trials} <= {"SUCCEEDED", "EARLY_STOPPED"}
    assert all(trial.finalMetricData for trial in trials if trial.status == "SUCCEEDED")
    if entry.name != "NetworkMorphism":
        points = [trial.hyperParameters[0].parameters for trial in trials]
        assert [point for point in points if point["x"] * point["layers"] > LIMIT] == []
