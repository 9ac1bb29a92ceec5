"""Small experiments for tests: a trial script and the configuration that runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nni.experiment import Experiment, TrialJob

INSTANT = """\
import nni

parameters = nni.get_next_parameter()
nni.report_intermediate_result(parameters["x"])
nni.report_final_result((parameters["x"] - 0.3) ** 2)
"""
"""Trial that ends at once; its result is a function of its parameter."""

PATIENT = """\
import pathlib
import signal

import nni

parameters = nni.get_next_parameter()
nni.report_intermediate_result(parameters["x"])
print("waiting", flush=True)
signal.pause()
"""
"""Trial that runs until it is stopped."""

SPACE: dict[str, Any] = {"x": {"_type": "uniform", "_value": [0, 1]}}


def write_experiment(folder: Path, script: str = INSTANT, **changes: object) -> Path:
    """Write ``script`` and a configuration that runs it; return the configuration's path.

    Args:
        folder: created if it does not exist.
        script: the trial.
        **changes: fields of the configuration by their camelCase names; `None` removes one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trial.py").write_text(script)
    config: dict[str, Any] = {
        "experimentName": "test",
        "searchSpace": SPACE,
        "trialCommand": "python3 trial.py",
        "trialConcurrency": 2,
        "maxTrialNumber": 5,
        "tuner": {"name": "Random"},
        "trainingService": {"platform": "local"},
        **changes,
    }
    given = {name: value for name, value in config.items() if value is not None}
    path = folder / "config.yml"
    path.write_text(json.dumps(given))  # JSON is YAML
    return path


def trials_in_order(experiment: Experiment) -> list[TrialJob]:
    """Return the trials of an experiment by their sequence numbers."""
    return sorted(experiment.list_trial_jobs(), key=lambda job: job.sequenceId)
