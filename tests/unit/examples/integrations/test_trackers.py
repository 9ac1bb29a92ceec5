"""The example runs with each tracker that is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripts import ROOT

SCRIPT = ROOT / "examples/integrations/trackers/train.py"
FOLDERS = {"mlflow": "mlruns", "tensorboardX": "tensorboard", "wandb": "wandb"}
"""Folder that the run leaves, by library."""


@pytest.mark.parametrize("library", FOLDERS)
def test_the_run_of_the_tracker_is_written(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    tracker = "tensorboard" if library == "tensorboardX" else library

    # A process of its own: MLflow remembers a database by its relative name.
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), tracker, "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert (ran.stdout + ran.stderr).count("Intermediate result") == 2
    assert list((tmp_path / FOLDERS[library]).iterdir())
