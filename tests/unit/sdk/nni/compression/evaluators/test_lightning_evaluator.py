from typing import Any, cast

import pytest
import pytorch_lightning
import torch
from pytorch_lightning.callbacks import EarlyStopping
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

import nni
from nni.compression.base.evaluator import Evaluator
from nni.compression.evaluators.lightning_evaluator import (
    LightningEvaluator,
    is_lightning_trainer,
)
from nni.testing.evaluators import EvaluatorConformance

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]

STEPS = 4
BATCH = 8
INPUTS = torch.linspace(-1, 1, STEPS * BATCH * 3).reshape(-1, 3)
TARGETS = INPUTS.sum(1, keepdim=True)


class Regression(pytorch_lightning.LightningModule):
    """LightningModule that is trained and validated on the same data."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        return cast("Tensor", self.network(inputs))

    def training_step(self, batch: tuple[Tensor, Tensor], _batch_idx: int) -> Tensor:
        return nn.functional.mse_loss(self(batch[0]), batch[1])

    def validation_step(self, batch: tuple[Tensor, Tensor], _batch_idx: int) -> None:
        self.log("default", -nn.functional.mse_loss(self(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        optimizer = SGD(self.parameters(), lr=0.1, momentum=0.9)
        scheduler = {"scheduler": StepLR(optimizer, 1, gamma=0.9), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


class Data(pytorch_lightning.LightningDataModule):
    """Batches in a fixed order."""

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(TensorDataset(INPUTS, TARGETS), BATCH)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        return self.train_dataloader()


def traced_trainer(**kwargs: Any) -> pytorch_lightning.Trainer:
    defaults = {
        "max_epochs": 1,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    return nni.trace(pytorch_lightning.Trainer)(**{**defaults, **kwargs})


class TestConformance(EvaluatorConformance):
    steps_per_epoch = STEPS

    def make(self) -> tuple[nn.Module, Evaluator]:
        return Regression(), LightningEvaluator(traced_trainer(), Data(), INPUTS)


def steps_of(evaluator: Evaluator, module: nn.Module, **limits: int) -> int:
    steps: list[int] = []
    evaluator.bind_model(module)
    evaluator.patch_optimizer_step([], [lambda: steps.append(1)])
    evaluator.train(**limits)
    evaluator.unbind_model()
    return len(steps)


def test_callbacks_start_from_their_first_state_in_each_training() -> None:
    stopping = EarlyStopping("default", patience=1, mode="min")  # the metric rises: stops at once
    trainer = traced_trainer(max_epochs=9, callbacks=[stopping])
    evaluator = LightningEvaluator(trainer, Data())

    steps = [steps_of(evaluator, Regression()) for _ in range(2)]

    assert steps == [2 * STEPS] * 2


def test_limits_replace_those_of_the_trainer() -> None:
    evaluator = LightningEvaluator(traced_trainer(min_epochs=3, max_epochs=3), Data())

    assert steps_of(evaluator, Regression(), max_steps=2) == 2
    assert steps_of(evaluator, Regression()) == 3 * STEPS


def test_the_module_is_as_before_after_a_training() -> None:
    module = Regression()
    evaluator = LightningEvaluator(traced_trainer(), Data())

    steps_of(evaluator, module, max_steps=1)

    assert not {"training_step", "on_train_start"} & set(vars(module))
    assert module._trainer is None


@pytest.mark.filterwarnings("ignore:`training_step` returned `None`:UserWarning")
def test_a_skipped_batch_stays_skipped() -> None:
    class Skipping(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return super().training_step(batch, batch_idx) if batch_idx else None

    seen: list[object] = []
    evaluator = LightningEvaluator(traced_trainer(), Data())
    evaluator.bind_model(Skipping())

    def remember(loss: Tensor, batch: object) -> Tensor:
        seen.append(batch)
        return loss

    evaluator.patch_loss(remember)
    evaluator.train()

    assert len(seen) == STEPS - 1


def test_an_evaluation_needs_a_default_metric() -> None:
    class Unnamed(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("accuracy", 1.0)

    evaluator = LightningEvaluator(traced_trainer(), Data())
    evaluator.bind_model(Unnamed())

    with pytest.raises(KeyError, match="must have the key 'default', got 'accuracy'"):
        evaluator.evaluate()


def test_manual_optimization_cannot_be_patched() -> None:
    module = Regression()
    module.automatic_optimization = False
    evaluator = LightningEvaluator(traced_trainer(), Data())
    evaluator.bind_model(module)

    with pytest.raises(RuntimeError, match="set automatic_optimization = True"):
        evaluator.patch_loss(lambda loss, _: loss)


def test_only_a_lightning_module_is_bound() -> None:
    evaluator = LightningEvaluator(traced_trainer(), Data())

    with pytest.raises(
        TypeError, match=r"must be a LightningModule.*got a Linear; .*TorchEvaluator"
    ):
        evaluator.bind_model(nn.Linear(1, 1))


def test_only_a_traced_trainer_is_taken() -> None:
    plain = pytorch_lightning.Trainer(accelerator="cpu", logger=False, barebones=True)

    with pytest.raises(TypeError, match=r"must be made by nni\.trace"):
        LightningEvaluator(plain)
    with pytest.raises(TypeError, match=r"nni\[lightning\].*got 3"):
        LightningEvaluator(3)  # type: ignore[arg-type]
    assert is_lightning_trainer(plain)
    assert not is_lightning_trainer(None)
