"""The example runs with each tracker that is installed."""

from pathlib import Path

import pytest

from tests.support.scripts import Scripts, scripts

__all__ = ["scripts"]  # a fixture

FOLDERS = {"mlflow": "mlruns", "tensorboardX": "tensorboard", "wandb": "wandb"}
"""Folder that the run leaves, by library."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("library", FOLDERS)
def test_the_run_of_the_tracker_is_written(library: str, scripts: Scripts) -> None:
    pytest.importorskip(library)
    tracker = "tensorboard" if library == "tensorboardX" else library

    printed = scripts("integrations/trackers/train.py", tracker, 2)

    assert printed.count("Intermediate result") == 2
    assert list(Path(FOLDERS[library]).iterdir())
