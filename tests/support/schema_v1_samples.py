"""Samples of schema v1, and small documents of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

SAMPLES: Final = Path(__file__).parents[1] / "assets" / "schema_v1"
NAMES: Final = sorted(path.stem for path in SAMPLES.glob("*.yml"))

_SPACE: Final = {"rate": {"_type": "uniform", "_value": [0, 1]}}
_ANNOTATED: Final = "'''@nni.variable(nni.uniform(0, 1), name=rate)'''\nrate = 0.5\n"


def sample(name: str, folder: Path) -> Path:
    """Copy a sample into a folder, with the files that it names; return its path."""
    (folder / "search_space.json").write_text(json.dumps(_SPACE))
    for directory, file, text in (
        ("code", "mnist.py", _ANNOTATED),
        ("tuner", "mytuner.py", "class MyTuner: ...\n"),
        ("assessor", "myassessor.py", "class MyAssessor: ...\n"),
    ):
        (folder / directory).mkdir()
        (folder / directory / file).write_text(text)
    return Path(shutil.copy(SAMPLES / f"{name}.yml", folder / "config.yml"))


def document(**changes: Any) -> dict[object, Any]:
    """Return a valid document of schema v1 with changes; `None` takes a field away."""
    fields = {
        "experimentName": "old",
        "trialConcurrency": 2,
        "trainingServicePlatform": "local",
        "searchSpacePath": "space.json",
        "tuner": {"builtinTunerName": "TPE"},
        "trial": {"command": "python3 trial.py", "codeDir": "."},
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not None}
