import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from nni.compression.job import step_files
from nni.compression.job.step_files import StepResult

RESULT = StepResult(1, "prune", 0.5, {"0.weight": 0.25}, 10)


def drawn() -> list[float]:
    """Return a number of each generator."""
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]  # noqa: NPY002


def test_all_generators_continue_where_the_step_ended(tmp_path: Path) -> None:
    step_files.seed_generators(3)
    np.random.randn()  # noqa: NPY002 - leaves half of a pair of normal numbers behind
    step_files.save_step(tmp_path, "job", {}, RESULT)
    expected = [*drawn(), float(np.random.randn())]  # noqa: NPY002

    step_files.seed_generators(4)
    step_files.load_random_states(tmp_path)

    assert [*drawn(), float(np.random.randn())] == expected  # noqa: NPY002


def test_a_saved_result_and_its_masks_are_read_again(tmp_path: Path) -> None:
    masks = {"0": {"weight": torch.tensor([[0.0, 1.0]]), "bias": torch.tensor([1.0])}, "a.b": {}}
    step_files.save_step(tmp_path, "job", masks, RESULT)

    assert step_files.result_in(tmp_path, "job") == RESULT
    found = step_files.load_masks_of(tmp_path)
    assert {name: {t: m.tolist() for t, m in own.items()} for name, own in found.items()} == {
        "0": {"weight": [[0.0, 1.0]], "bias": [1.0]}
    }


def test_a_folder_without_its_record_is_incomplete(tmp_path: Path) -> None:
    step_files.save_step(tmp_path, "job", {}, RESULT)
    (tmp_path / step_files.RECORD).unlink()

    assert step_files.result_in(tmp_path, "job") is None


def test_files_of_another_job_are_refused(tmp_path: Path) -> None:
    step_files.save_step(tmp_path, "job", {}, RESULT)

    with pytest.raises(ValueError, match="files of another job"):
        step_files.result_in(tmp_path, "other")


def test_shared_tensors_are_saved_once_and_stay_shared(tmp_path: Path) -> None:
    def tied() -> nn.Sequential:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = model[0].weight
        return model

    step_files.save_model(source := tied(), tmp_path)
    step_files.load_model(target := tied(), tmp_path / step_files.MODEL)

    assert sorted(load_file(tmp_path / step_files.MODEL)) == ["0.bias", "0.weight", "1.bias"]
    assert target.get_parameter("1.weight") is target.get_parameter("0.weight")
    assert torch.equal(target.get_parameter("0.weight"), source.get_parameter("0.weight"))


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (nn.Sequential(nn.Linear(2, 3)), r"0\.bias has shape \(2,\), but the model has \(3,\)"),
        (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), r"only the model has '1\.bias'"),
        (nn.Sequential(nn.Linear(2, 2, bias=False)), r"only the file has '0\.bias'"),
    ],
)
def test_tensors_of_another_model_are_refused(
    tmp_path: Path, other: nn.Module, problem: str
) -> None:
    step_files.save_model(nn.Sequential(nn.Linear(2, 2)), tmp_path)
    before = step_files.state_of(other)

    with pytest.raises(ValueError, match=problem):
        step_files.load_model(other, tmp_path / step_files.MODEL)

    assert all(torch.equal(before[name], one) for name, one in step_files.state_of(other).items())


def test_files_of_an_interrupted_step_are_removed(tmp_path: Path) -> None:
    (tmp_path / "part.new").write_text("half")

    assert list(step_files.empty_folder(tmp_path).iterdir()) == []
