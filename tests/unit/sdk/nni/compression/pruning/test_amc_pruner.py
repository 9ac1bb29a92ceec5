import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.compression.config.settings import ConfigListError
from nni.compression.pruning.amc_pruner import AMCPruner
from nni.compression.speedup.counter import count_flops_params
from nni.compression.speedup.model_speedup import ModelSpeedup

LAYERS = [{"op_types": ["Conv2d", "Linear"]}]
BATCHES = [
    (torch.randn(4, 3, 4, 4, generator=torch.Generator().manual_seed(seed)), None)
    for seed in range(2)
]


class Mobile(nn.Module):
    """Depthwise separable convolutions and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.pointwise = nn.Conv2d(8, 16, 1, bias=False)
        self.last = nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, image: Tensor) -> Tensor:
        found = torch.relu(self.norm(self.stem(image)))
        found = torch.relu(self.pointwise(self.depthwise(found)))
        return self.head(torch.relu(self.last(found)).mean((2, 3)))


def model() -> Mobile:
    torch.manual_seed(0)
    return Mobile().eval()


def evaluator(val_loader: Any, one: nn.Module) -> float:
    """Return 100 minus the distance to the outputs of the whole model."""
    with torch.no_grad():
        return 100 - sum(float((one(x) - model()(x)).norm()) for x, _ in val_loader)


def pruner(one: nn.Module, folder: Path | None = None, **options: Any) -> AMCPruner:
    given: dict[str, Any] = {
        "config_list": LAYERS,
        "evaluator": evaluator,
        "val_loader": BATCHES,
        "flops_ratio": 0.6,
        "channel_round": 2,
        "hidden1": 8,
        "hidden2": 8,
        "warmup": 2,
        "train_episode": 4,
        "output_dir": folder,
        "seed": 0,
    }
    return AMCPruner(one, **{**given, **options})


def test_the_smaller_model_has_the_best_reward_and_keeps_the_budget() -> None:
    one = model()
    amc = pruner(one)

    _, masks = amc.compress()
    found = evaluator(BATCHES, one)
    amc.unwrap_model()

    assert len(amc.history) == 4
    best = max(amc.history, key=lambda result: result.reward)
    assert found == pytest.approx(best.accuracy)
    assert all(result.flops_ratio <= 0.6 for result in amc.history)
    before = count_flops_params(model(), BATCHES[0][0], verbose=False)[0]
    ModelSpeedup(one, BATCHES[0][0], masks).speedup_model()
    after = count_flops_params(one, BATCHES[0][0], verbose=False)[0]
    assert after / before == pytest.approx(best.flops_ratio)
    assert evaluator(BATCHES, one) == pytest.approx(found, abs=1e-3)


def test_model_is_wrapped_after_an_error_of_its_trace() -> None:
    one = model()
    amc = pruner(one, val_loader=[(torch.zeros(1, 7, 4, 4), None)])  # it has 3 channels

    with pytest.raises(RuntimeError):
        amc.compress()

    assert "stem.module" in dict(one.named_modules())


def test_modules_keep_their_own_modes() -> None:
    one = model()
    one.train().norm.eval()

    pruner(one).compress()

    assert one.training
    assert not one.norm.training


def test_masks_are_those_of_input_channels() -> None:
    one = model()
    amc = pruner(one)

    _, masks = amc.compress()

    assert bool(masks["stem"]["weight"].all())  # the input of the model stays
    assert bool(masks["depthwise"]["weight"].all())
    for name in ("pointwise", "last", "head"):
        mask = masks[name]["weight"]
        columns = mask.transpose(0, 1).flatten(1)
        assert torch.equal(columns.amin(1), columns.amax(1))
        assert int(columns[:, 0].sum()) % 2 == 0
    assert bool(masks["head"]["bias"].all())


def test_weights_are_fitted_again() -> None:
    fitted, masked = model(), model()
    amc = pruner(fitted, train_episode=1)
    _, masks = amc.compress()
    with torch.no_grad():
        for name, targets in masks.items():
            masked.get_submodule(name).get_parameter("weight").mul_(targets["weight"])

    assert evaluator(BATCHES, fitted) > evaluator(BATCHES, masked)


def test_the_same_seed_gives_the_same_search() -> None:
    histories = []
    for _ in range(2):
        amc = pruner(model())
        amc.compress()
        histories.append(amc.history)

    assert histories[0] == histories[1]


def test_files_are_left_in_the_named_folder(tmp_path: Path) -> None:
    amc = pruner(model(), tmp_path, suffix="one", dataset="digits")
    amc.compress()

    folder = tmp_path / "mobilenet_digits_r0.6_search-one"
    assert amc.output_folder == folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "actor.pkl",
        "best_mask.pth",
        "best_model.pth",
        "critic.pkl",
        "history.jsonl",
        "log.txt",
    ]
    lines = (folder / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["episode"] for line in lines] == [0, 1, 2, 3]
    masks = torch.load(folder / "best_mask.pth", weights_only=True)
    assert torch.equal(masks["last"]["weight"], amc.get_masks()["last"]["weight"])
    state = torch.load(folder / "best_model.pth", weights_only=True)
    assert list(state) == list(model().state_dict())


def test_operations_count_in_the_other_reward() -> None:
    amc = pruner(model(), reward="acc_flops_reward", train_episode=1)
    amc.compress()

    (result,) = amc.history
    assert result.reward < 0


def test_a_model_that_diverges_is_worth_nothing() -> None:
    amc = pruner(model(), evaluator=lambda *_: float("nan"), train_episode=3)
    amc.compress()

    assert [result.reward for result in amc.history] == [0.0] * 3


def test_excluded_layers_keep_their_inputs() -> None:
    amc = pruner(
        model(),
        config_list=[*LAYERS, {"op_names": ["last"], "exclude": True}],
        flops_ratio=0.9,
        train_episode=1,
    )
    _, masks = amc.compress()

    assert "last" not in masks
    assert len(amc.history[0].actions) == 2  # inputs of pointwise and head


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"evaluator": 1}, "evaluator must be a function of loader and model"),
        ({"flops_ratio": 0.2}, r"flops_ratio must be in \(lbound, 1\], got 0.2"),
        ({"lbound": 0}, r"lbound must be in \(0, 1\), got 0"),
        ({"rbound": 0.1}, r"rbound must be in \[lbound, 1\], got 0.1"),
        ({"reward": "acc"}, "reward must be 'acc_reward'"),
        ({"window_length": 2}, "window_length must be 1, got 2"),
        ({"channel_round": 0}, "channel_round must be >= 1"),
        ({"tau": 0}, "tau must be"),
        ({"config_list": [{"op_types": ["Conv2d"], "sparsity": 0.5}]}, "has sparsity; the agent"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError, ConfigListError), match=error):
        pruner(model(), **options)


def test_a_loader_without_batches_is_refused() -> None:
    with pytest.raises(ValueError, match="val_loader must have a batch"):
        pruner(model(), val_loader=[]).compress()


def test_an_episode_must_be_long_enough_for_all_decisions() -> None:
    pruner(model(), max_episode_length=3).compress()

    with pytest.raises(ValueError, match=r"max_episode_length must be at least 3, .* got 2: raise"):
        pruner(model(), max_episode_length=2).compress()
    with pytest.raises(ValueError, match="max_episode_length must be >= 1, got 0"):
        pruner(model(), max_episode_length=0)


def test_another_epsilon_is_refused_with_the_argument_to_set() -> None:
    pruner(model(), epsilon=50000)

    with pytest.raises(ValueError, match=r"epsilon must be 50000, got 100: .* set delta_decay"):
        pruner(model(), epsilon=100)
