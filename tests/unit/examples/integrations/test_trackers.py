"""The example runs with each tracker that is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scripts import ROOT

FOLDER = ROOT / "examples/integrations/trackers"
FOLDERS = {"mlflow": "mlruns", "tensorboardX": "tensorboard", "wandb": "wandb"}
"""Folder that the run leaves, by library."""


@pytest.mark.parametrize("library", FOLDERS)
def test_the_run_of_the_tracker_is_written(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    tracker = "tensorboard" if library == "tensorboardX" else library

    printed = output_of("train.py", tracker, tmp_path)

    assert printed.count("Intermediate result") == 2
    assert list((tmp_path / FOLDERS[library]).iterdir())


@pytest.mark.parametrize("library", FOLDERS)
def test_the_trials_of_a_search_are_runs(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    tracker = "tensorboard" if library == "tensorboardX" else library

    printed = output_of("search.py", tracker, tmp_path)

    assert "best of 2 runs: 0.88" in printed
    assert list((tmp_path / FOLDERS[library]).iterdir())
    assert len(list(tmp_path.glob("weights-*.npy"))) == 2


def output_of(script: str, tracker: str, folder: Path) -> str:
    """Run a script in a process of its own: MLflow remembers a database by its relative name."""
    ran = subprocess.run(
        [sys.executable, str(FOLDER / script), tracker, "2"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout + ran.stderr
