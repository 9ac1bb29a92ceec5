"""Lightning modules around the module of an evaluator."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import ReduceLROnPlateau, StepLR

from nni.nas.oneshot.pytorch.training import (
    BaseOneShotLightningModule,
    ManualOneShotLightningModule,
    TaggedLoader,
    step_output,
)
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Training, fit, line_data


class Plain(ManualOneShotLightningModule):
    """Trains the weights only."""

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        return self.weight_step(batch, batch_idx)


def test_manual_training_equals_that_of_the_inner_module_alone() -> None:
    torch.manual_seed(0)
    alone = Training(nn.Linear(2, 1))
    wrapped = Training(nn.Linear(2, 1))
    wrapped.load_state_dict(alone.state_dict())

    fit(alone, 3, train_dataloaders=line_data())
    fit(Plain(wrapped), 3, train_dataloaders=line_data())

    torch.testing.assert_close(wrapped.state_dict(), alone.state_dict())


def test_inner_module_gets_hooks_and_logs() -> None:
    inner = Training(nn.Linear(2, 1))

    trainer = fit(Plain(inner), 2, train_dataloaders=line_data(), val_dataloaders=line_data())

    assert inner.seen == ["epoch", "epoch"]
    assert {"train_loss", "val_loss", "score"} <= trainer.callback_metrics.keys()
    assert "log" not in vars(inner)


def test_collected_logs_are_not_logged() -> None:
    class Silent(Plain):
        def training_step(self, batch: Any, batch_idx: int) -> Tensor:
            with self.collected_logs() as logged:
                loss = super().training_step(batch, batch_idx)
            assert list(logged) == ["train_loss"]
            return loss

    trainer = fit(Silent(Training(nn.Linear(2, 1))), train_dataloaders=line_data())

    assert trainer.callback_metrics == {}


def test_gradient_of_the_weights_is_clipped() -> None:
    inner = Training(nn.Linear(2, 1))
    before = [value.detach().clone() for value in inner.parameters()]

    fit(Plain(inner, gradient_clip_val=1e-3), train_dataloaders=line_data(8))

    moved = torch.cat([(a - b).flatten() for a, b in zip(inner.parameters(), before, strict=True)])
    # One step with the rate 0.1; clipping scales to the norm but for 1e-6.
    assert float(moved.detach().norm()) == pytest.approx(1e-4, rel=1e-2)


def test_inner_module_with_manual_optimization_is_refused() -> None:
    inner = Training(nn.Linear(2, 1))
    inner.automatic_optimization = False

    with pytest.raises(ValueError, match="must use automatic optimization"):
        Plain(inner)


def test_several_optimizers_are_refused() -> None:
    class Two(Training):
        def configure_optimizers(self) -> Any:
            return [SGD(self.parameters(), 0.1), SGD(self.parameters(), 0.1)]

    with pytest.raises(ValueError, match="must have one optimizer, got 2"):
        Plain(Two(nn.Linear(2, 1))).configure_optimizers()


def test_export_must_be_overridden() -> None:
    with pytest.raises(TypeError, match="must override export"):
        BaseOneShotLightningModule(Training(nn.Linear(2, 1))).export()


def test_schedulers_step_at_their_interval() -> None:
    class Scheduled(Training):
        def configure_optimizers(self) -> Any:
            optimizer = SGD(self.parameters(), 1e-3)
            plateau = ReduceLROnPlateau(optimizer, patience=0, factor=0.5, mode="max")
            each = StepLR(optimizer, 1, 0.1)
            return [optimizer], [
                {"scheduler": each, "interval": "step", "frequency": 2},
                {"scheduler": plateau, "monitor": "train_loss"},
            ]

    inner = Scheduled(nn.Linear(2, 1))
    module = Plain(inner)

    fit(module, 2, train_dataloaders=line_data(32))

    # Four steps in an epoch: two of the first scheduler; the falling loss halves the rate once.
    assert module.trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(1e-3 * 0.1**4 / 2)


def test_tagged_loader_names_the_batches() -> None:
    loader = TaggedLoader({"train": [1, 2], "val": [3]})

    assert len(loader) == 3
    assert list(loader) == [("train", 1), ("train", 2), ("val", 3)]
    assert len(list(loader)) == 3


class Hooked(Training):
    """Notes the hooks that it gets."""

    def note(self, name: str) -> None:
        if name not in self.seen:
            self.seen.append(name)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        assert isinstance(batch[0], Tensor)
        self.note("transfer")
        return batch

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        assert isinstance(batch[0], Tensor)
        self.note("start")

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        assert isinstance(batch[0], Tensor)
        self.note("end")

    def on_before_backward(self, loss: Tensor) -> None:
        self.note("backward")

    def on_after_backward(self) -> None:
        self.note("gradients")


NAMES = {"transfer", "start", "end", "backward", "gradients", "epoch"}


def test_inner_module_gets_the_hooks_of_batches() -> None:
    inner = Hooked(nn.Linear(2, 1))

    fit(Plain(inner), 1, train_dataloaders=line_data())

    assert set(inner.seen) == NAMES


class WithoutIndex(Training):
    """Training whose steps take the batch alone, and skip all."""

    def training_step(self, batch: Any) -> None:  # type: ignore[override]  # as Lightning permits
        self.seen.append("step")

    def validation_step(self, batch: Any) -> None:  # type: ignore[override]  # as above
        self.seen.append("validation")


def test_steps_need_not_take_an_index_and_may_skip_a_batch() -> None:
    inner = WithoutIndex(nn.Linear(2, 1))
    before = inner.model.weight.clone()

    fit(Plain(inner), 1, train_dataloaders=line_data(8), val_dataloaders=line_data(8))

    assert inner.seen[-3:] == ["epoch", "step", "validation"]
    torch.testing.assert_close(inner.model.weight, before)


def test_step_of_any_number_of_arguments_gets_all() -> None:
    assert step_output(lambda *args: args, 1, 2) == (1, 2)
    assert step_output(lambda batch, *, index=3: (batch, index), 1, 2) == (1, 3)


def test_hooks_of_automatic_optimization_are_warned_of() -> None:
    class Warmed(Training):
        def optimizer_step(self, *args: Any, **kwargs: Any) -> None:
            super().optimizer_step(*args, **kwargs)

    with pytest.warns(RuntimeWarning, match="optimizer_step of Warmed are not called"):
        Plain(Warmed(nn.Linear(2, 1)))


def test_metric_of_a_scheduler_that_is_not_logged_is_named() -> None:
    class Scheduled(Training):
        def configure_optimizers(self) -> Any:
            optimizer = SGD(self.parameters(), 1e-3)
            return {"optimizer": optimizer, "lr_scheduler": ReduceLROnPlateau(optimizer)}

    with pytest.raises(ValueError, match=r"got 'val_loss'; logged are \['train_loss'\]"):
        fit(Plain(Scheduled(nn.Linear(2, 1))), 1, train_dataloaders=line_data())
