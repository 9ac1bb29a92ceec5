"""Finished experiment with several objectives, a limit, stops, failures, NaN, null and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from tests.support.finished_experiment import Run, write_runs

LATENCY_LIMIT: Final = 40.0
UNITS: Final = (None, [8, 16], [32], 64)
SPACE: Final = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 0.1]},
    "units": {"_type": "choice", "_value": list(UNITS)},
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "svm", "C": {"_type": "uniform", "_value": [0, 10]}},
            {"_name": "mlp", "C": {"_type": "uniform", "_value": [50, 90]}},
            {"_name": "none"},
        ],
    },
}
STEPS: Final = 6
COUNT: Final = 48


def _run(number: int) -> Run:
    """Return one trial: every eighth fails, NaN once, two of three are stopped early."""
    quality = 0.5 + 0.4 * (number * 29 % 47) / 47
    units: object = UNITS[number % 4]
    branch = ("svm", "mlp", "none")[number % 3]
    inner = {"svm": {"C": number % 10}, "mlp": {"C": 50 + number % 40}, "none": {}}[branch]
    parameters = {
        "lr": 10 ** (-4 + 3 * (number * 17 % 41) / 41),
        "units": units,
        "model": {"_name": branch, **inner},
    }
    latency = 10 + 45 * quality * (number % 5 + 1) / 5
    curve = [
        {"accuracy": round(quality * step / STEPS, 4), "latency": latency}
        for step in range(1, STEPS + 1)
    ]
    if number % 8 == 0:
        return Run(parameters, curve[: number % 3], end="FAILED")
    if number == 13:
        return Run(parameters, curve, {"accuracy": float("nan"), "latency": latency})
    if number % 3:
        return Run(parameters, curve[: 2 + number % 3], end="EARLY_STOPPED")
    return Run(parameters, curve, curve[-1])


def write_varied(root: Path, experiment_id: str, *, single: bool = False) -> Path:
    """Write the folder `<root>/<id>` of the experiment and return it.

    Args:
        root: an existing folder.
        experiment_id: its id.
        single: whether accuracy is the only objective, without a limit.
    """
    config = config_pb2.ExperimentConfig(experiment_name="varied", search_space=to_value(SPACE))
    config.objectives.add(metric="accuracy", mode=metric_pb2.OPTIMIZE_MODE_MAXIMIZE)
    if not single:
        config.objectives.add(metric="latency", mode=metric_pb2.OPTIMIZE_MODE_MINIMIZE)
        config.constraints.add(metric="latency", max=LATENCY_LIMIT)
    return write_runs(root, experiment_id, [_run(number) for number in range(COUNT)], config)
