import logging
from pathlib import Path

import pytest
import torch

from nni.nas.experiment.checkpoints import CheckpointFiles
from nni.nas.space import ModelStatus


def test_state_survives(tmp_path: Path) -> None:
    files = CheckpointFiles(tmp_path / "checkpoint")
    state = {"version": 1, "strategy": {"population": [({"a": 1}, 2.5)]}, "none": None}

    files.write_state({"version": 0})
    files.write_state(state)

    assert files.read_state() == state
    assert [path.name for path in files.directory.iterdir()] == ["state.ckpt.torch"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"strategy": {"status": ModelStatus.Trained}}, r"state\['strategy'\]\['status'\]"),
        ({"strategy": [1, (object(),)]}, r"state\['strategy'\]\[1\]\[0\]"),
        ({ModelStatus.Trained: 1}, "a key of state"),
    ],
)
def test_state_that_could_not_be_read_is_refused(
    tmp_path: Path, value: dict[str, object], path: str
) -> None:
    with pytest.raises(TypeError, match=f"{path} must be a plain value or a tensor"):
        CheckpointFiles(tmp_path).write_state(value)

    assert list(tmp_path.iterdir()) == []


def test_tensors_survive(tmp_path: Path) -> None:
    files = CheckpointFiles(tmp_path)
    weights = torch.nn.Linear(2, 1).state_dict()

    files.write_state({"strategy": weights})

    read = files.read_state()
    assert read is not None
    torch.testing.assert_close(read["strategy"]["weight"], weights["weight"])


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
