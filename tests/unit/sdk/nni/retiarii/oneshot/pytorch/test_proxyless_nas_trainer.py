"""Trainer of ProxylessNAS of NAS 1.0."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from nni.retiarii import fixed_arch
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator.pytorch import DataLoader
from nni.retiarii.oneshot.pytorch import ProxylessNasTrainer
from tests.support.oneshot_trainers import TwoBranches, points

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


def trainer(**options: Any) -> ProxylessNasTrainer:
    model = TwoBranches()
    loader: Any = DataLoader(points(), 16)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    return ProxylessNasTrainer(model, optimizer, "cpu", loader, loader, **options)


def test_architecture_and_weights_are_saved(tmp_path: Path) -> None:
    made = trainer(
        n_epochs=1,
        warmup=False,
        ckpt_path=tmp_path / "weights.pth",
        arch_path=tmp_path / "arch.json",
    )

    made.train()

    with fixed_arch(tmp_path / "arch.json"):
        chosen = TwoBranches().branch
    assert type(chosen).__name__ == ("Zero", "Linear")[int(made.export()["branch"])]
    loaded = trainer(n_epochs=1, load_ckpt=True, ckpt_path=tmp_path / "weights.pth")
    assert all(
        torch.equal(one, other)
        for one, other in zip(made.model.parameters(), loaded.model.parameters(), strict=True)
    )


def test_file_of_weights_that_holds_code_is_not_opened(tmp_path: Path) -> None:
    torch.save(Path("an object of a class"), tmp_path / "weights.pth")

    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        trainer(load_ckpt=True, ckpt_path=tmp_path / "weights.pth")


def test_arguments_reach_optimizer_and_strategy() -> None:
    made = trainer(init_lr=0.5, arch_optim_lr=0.25, warmup_epochs=3)

    assert made._module.weight_optimizer.param_groups[0]["lr"] == 0.5
    assert made._options == {"arc_learning_rate": 0.25, "warmup_epochs": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"binary_mode": "one"}, "binary_mode must be one of"),
        ({"arch_init_type": "zero"}, "arch_init_type must be one of"),
        ({"load_ckpt": True}, "ckpt_path must be given with load_ckpt=True"),
    ],
)
def test_wrong_argument_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainer(**options)


def test_trainer_warns_of_the_newer_name_once() -> None:
    trainer()
    warn_once.cache_clear()

    with pytest.warns(DeprecationWarning, match="ProxylessNasTrainer") as caught:
        _ = [trainer() for _ in range(2)]

    assert sum("ProxylessNasTrainer" in str(one.message) for one in caught) == 1
