import logging
from pathlib import Path

import pytest

from nni.nas.experiment.checkpoints import CheckpointFiles


def test_state_survives(tmp_path: Path) -> None:
    files = CheckpointFiles(tmp_path / "checkpoint")
    state = {"version": 1, "strategy": {"population": [({"a": 1}, 2.5)]}, "none": None}

    files.write_state({"version": 0})
    files.write_state(state)

    assert files.read_state() == state
    assert [path.name for path in files.directory.iterdir()] == ["state.ckpt.torch"]


def test_configuration_survives(tmp_path: Path) -> None:
    files = CheckpointFiles(tmp_path / "checkpoint")
    assert not files.exists()

    files.write_config({"maxTrialNumber": 3})

    assert files.exists()
    assert files.read_config() == {"maxTrialNumber": 3}


def test_missing_state_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert CheckpointFiles(tmp_path).read_state() is None

    assert "has no state" in caplog.text


def test_changed_configuration_is_logged_with_its_difference(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = CheckpointFiles(tmp_path)
    files.write_config({"a": 1, "b": 2})

    files.log_changes({"a": 1, "b": 2})
    unchanged = caplog.text
    files.log_changes({"a": 1, "b": 3})

    assert unchanged == ""
    assert '-  "b": 2' in caplog.text
    assert '+  "b": 3' in caplog.text
