"""Training of a supernet that computes one random architecture in each step."""

from typing import Any

import torch
from torch import Tensor

from nni.nas.oneshot.pytorch.path_sampling import UniformSampler
from nni.nas.oneshot.pytorch.sampling_training import SamplingLightningModule
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import (
    Branches,
    Training,
    as_path,
    fit,
    line_data,
)


class Noted(Training):
    """Notes the architecture of each step."""

    def __init__(self, model: Any, path: Any) -> None:
        super().__init__(model)
        self.path = path
        self.steps: list[str] = []

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        self.steps.append(self.path.sample["branch"])
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        self.steps.append(self.path.sample["branch"])
        super().validation_step(batch, batch_idx)


def made(seed: int = 0) -> SamplingLightningModule:
    torch.manual_seed(seed)
    space = Branches()
    path = as_path(space)
    return SamplingLightningModule(Noted(space, path), path, UniformSampler(space))


def steps_of(module: SamplingLightningModule) -> list[str]:
    assert isinstance(module.training_module, Noted)
    return module.training_module.steps


def test_each_step_computes_a_random_architecture() -> None:
    module = made()

    fit(module, 3, train_dataloaders=line_data(64), val_dataloaders=line_data(16))

    # 24 steps of training, 6 of validation and 2 of the check before; all equal once in 2^31.
    assert len(steps_of(module)) == 32
    assert set(steps_of(module)) == {"zero", "line"}


def test_steps_repeat_with_the_seed() -> None:
    first, second = made(), made()

    for module in (first, second):
        fit(module, train_dataloaders=line_data(64))

    assert steps_of(first) == steps_of(second)


def test_checkpoint_holds_the_state_of_the_draws() -> None:
    first, second = made(), made(1)
    checkpoint: dict[str, Any] = {}
    first.sampler.draw()

    first.on_save_checkpoint(checkpoint)
    second.on_load_checkpoint(checkpoint)

    assert [first.export() for _ in range(9)] == [second.export() for _ in range(9)]


class Warmed(Training):
    """Steps the optimizer itself, and takes batches alone."""

    def training_step(self, batch: Any) -> Tensor:  # type: ignore[override]  # as Lightning permits
        return super().training_step(batch, 0)

    def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("step")
        super().optimizer_step(*args, **kwargs)


def test_hooks_of_automatic_optimization_are_those_of_the_inner_module() -> None:
    space = Branches()
    path = as_path(space)
    inner = Warmed(space)

    fit(SamplingLightningModule(inner, path, UniformSampler(space)), train_dataloaders=line_data())

    assert inner.seen == ["epoch", "step", "step"]
