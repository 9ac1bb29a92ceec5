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
    optimizers_and_schedules,
)
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Training, fit, line_data

PARAMETERS = [nn.Parameter(torch.zeros(1))]


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


def test_all_forms_of_optimizers_are_read() -> None:
    optimizer = SGD(PARAMETERS, 0.1)
    scheduler = StepLR(optimizer, 1)
    forms: list[Any] = [
        ([optimizer], [scheduler]),
        {"optimizer": optimizer, "lr_scheduler": scheduler},
        {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "name": "rate"}},
        ({"optimizer": optimizer, "lr_scheduler": scheduler},),
    ]

    for form in forms:
        optimizers, schedules = optimizers_and_schedules(form)
        assert optimizers == [optimizer]
        assert [(one.scheduler, one.interval) for one in schedules] == [(scheduler, "epoch")]
    assert optimizers_and_schedules(optimizer) == ([optimizer], [])
    assert optimizers_and_schedules(None) == ([], [])
    with pytest.raises(ValueError, match="must return optimizers"):
        optimizers_and_schedules(3)


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
