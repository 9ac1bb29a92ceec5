import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.pruning.auto_compress_pruner import AutoCompressPruner

INPUT = torch.ones(2, 1, 3, 3)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 1), nn.ReLU(), nn.Conv2d(16, 16, 1), nn.ReLU(), nn.Conv2d(16, 2, 1)
    )


class Trainer:
    """Trainer of NNI 1.x that records its epochs."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def __call__(self, one: nn.Module, optimizer: Adam, criterion: Any, epoch: int) -> None:
        self.epochs.append(epoch)
        optimizer.zero_grad()
        loss: Tensor = criterion(one(INPUT), torch.zeros(2, 2, 3, 3))
        torch.autograd.backward(loss)
        optimizer.step()


def pruner(origin: nn.Module, trainer: Any, folder: Path, **options: Any) -> AutoCompressPruner:
    given: dict[str, Any] = {
        "config_list": [{"op_names": ["0", "2"], "sparsity": 0.5}],
        "evaluator": lambda _: 1.0,
        "dummy_input": INPUT,
        "criterion": nn.MSELoss(),
        "cool_down_rate": 0.3,
        "admm_num_iterations": 2,
        "admm_epochs_per_iteration": 1,
        "experiment_data_dir": folder,
        "seed": 0,
        "trainer": trainer,
    }
    return AutoCompressPruner(origin, **{**given, **options})


@pytest.mark.claim("compression", 43)
def test_three_rounds_make_a_smaller_model_without_masks(tmp_path: Path) -> None:
    origin, trainer = model(), Trainer()
    one = pruner(origin, trainer, tmp_path)

    found = one.compress()

    assert [round(ratio, 4) for ratio, _ in one.history] == [0.2063] * 3
    assert not any(isinstance(module, ModuleWrapper) for module in found.modules())
    assert not any("mask" in name for name in found.state_dict())
    sizes = [sum(p.numel() for p in each.parameters()) for each in (origin, found)]
    assert sizes[1] < 0.7 * sizes[0]
    assert found(INPUT).shape == (2, 2, 3, 3)
    assert trainer.epochs == [0, 1] * 3  # counted anew in each round
    assert torch.equal(origin.get_parameter("0.weight"), model().get_parameter("0.weight"))
    assert list(tmp_path.iterdir()) == []


def test_limits_hold_over_all_rounds(tmp_path: Path) -> None:
    entry = {
        "op_names": ["0", "2"],
        "total_sparsity": 0.5,
        "max_sparsity_per_layer": {"0": 0.9, "2": 0.5},
    }
    one = pruner(model(), Trainer(), tmp_path, config_list=[entry])

    found = one.compress()

    # 0.5 of 16 channels, and up to one for truncation in each round.
    assert found.get_parameter("2.weight").shape[0] >= 8


def test_the_smaller_state_is_exported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = pruner(model(), Trainer(), tmp_path, num_iterations=1)
    with pytest.raises(RuntimeError, match="no result to export"):
        one.export_model(tmp_path / "model.pth")
    found = one.compress()

    with caplog.at_level(logging.WARNING):
        one.export_model(tmp_path / "model.pth", tmp_path / "masks.pth")

    state = torch.load(tmp_path / "model.pth", weights_only=True)
    assert all(torch.equal(state[name], value) for name, value in found.state_dict().items())
    assert "is not written" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["model.pth"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"trainer": None}, "trainer must be a function"),
        ({"evaluator": None}, "evaluator is missing"),
        ({"num_iterations": 0}, "num_iterations must be >= 1"),
        ({"row": 0}, "row must be > 0, got 0"),
        ({"base_algo": "slim"}, "base_algo must be one of"),
        ({"cool_down_rate": 2}, "cool_down_rate must be"),
        ({"optimize_mode": "best"}, "optimize_mode must be"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, options: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        pruner(model(), **{"trainer": Trainer(), "folder": tmp_path, **options})
