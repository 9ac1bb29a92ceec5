from pathlib import Path

import pytest
import torch
from torch import nn

from nni.compression.scheduling import task_files


def test_a_model_is_read_back(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))

    task_files.save_model(model, tmp_path / "model.pth")
    found = task_files.load_model(tmp_path / "model.pth")

    assert torch.equal(found.get_parameter("0.weight"), model.get_parameter("0.weight"))


def test_a_model_that_cannot_be_saved_leaves_no_file(tmp_path: Path) -> None:
    class Local(nn.Module):
        pass

    with pytest.raises(TypeError, match=r"cannot be saved.*top of a module"):
        task_files.save_model(Local(), tmp_path / "model.pth")

    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    torch.save([1], tmp_path / "model.pth")

    with pytest.raises(TypeError, match=r"must hold a torch\.nn\.Module, got list"):
        task_files.load_model(tmp_path / "model.pth")


def test_masks_and_configuration_are_read_back(tmp_path: Path) -> None:
    masks = {"a": {"weight": torch.tensor([0.0, 1.0])}}
    config_list = [{"op_names": ["a"], "sparse_ratio": 0.5}]

    task_files.save_masks(masks, tmp_path / "masks.pth")
    task_files.save_config_list(config_list, tmp_path / "config_list.json")

    assert torch.equal(
        task_files.load_masks(tmp_path / "masks.pth")["a"]["weight"], masks["a"]["weight"]
    )
    assert task_files.load_config_list(tmp_path / "config_list.json") == config_list
