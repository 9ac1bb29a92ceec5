"""Valid experiment configurations, in Python and as YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nni.experiment.config import ExperimentConfig

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def complete(**changes: object) -> ExperimentConfig:
    """Return a valid configuration with changes."""
    fields: dict[str, Any] = {
        "search_space": SPACE,
        "trial_command": "python3 trial.py",
        "trial_concurrency": 2,
        "tuner": {"name": "Random"},
        "training_service": {"platform": "local"},
    }
    return ExperimentConfig(**{**fields, **changes})


def write(path: Path, text: str) -> Path:
    """Write a file with its folder; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


MINIMAL = """
searchSpace: {x: {_type: uniform, _value: [1e-5, 1]}}
trialCommand: python3 trial.py
trialConcurrency: 2
tuner: {name: Random}
trainingService: {platform: local}
"""
"""A complete file."""
