"""Default folder of checkpoints."""

from pathlib import Path

import pytest

from nni.hpo.checkpoint_folders import default_root, log_folder


def test_folder_is_named_by_the_experiment_of_the_log_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NNI_LOG_DIRECTORY", "/data/experiments/k3x9q1ab/log")

    assert log_folder() == Path("/data/experiments/k3x9q1ab/log")
    assert default_root() == Path("~/nni/checkpoint/k3x9q1ab")


@pytest.mark.parametrize("value", [None, ""])
def test_folder_outside_of_an_experiment_is_standalone(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("NNI_LOG_DIRECTORY", raising=False)
    else:
        monkeypatch.setenv("NNI_LOG_DIRECTORY", value)

    assert log_folder() is None
    assert default_root() == Path("~/nni/checkpoint/standalone")
