"""Checkpoints of supernets after each epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning
import torch
from pytorch_lightning.demos.boring_classes import BoringModel

from nni.nas.strategy.oneshot.epoch_checkpoint import NAME, EpochCheckpoint, epoch_metric
from nni.testing.oneshot_strategies import quiet_lightning
from tests.support.lightning_tasks import QUIET


def ignore(_metric: object) -> None:
    """Do nothing with a report."""


class Logged(BoringModel):
    """Module that logs the number of the epoch."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("epoch_number", float(self.current_epoch), on_step=False, on_epoch=True)
        return super().training_step(batch, batch_idx)


def trained(checkpoint: EpochCheckpoint, epochs: int, path: str | None = None) -> int:
    """Train with a checkpoint after each epoch; return the number of trained epochs."""
    with torch.random.fork_rng(devices=[]), quiet_lightning():
        trainer = pytorch_lightning.Trainer(
            max_epochs=epochs, limit_train_batches=1, limit_val_batches=0, **QUIET
        )
        trainer.callbacks.append(checkpoint)  # type: ignore[attr-defined] # Lightning sets it
        trainer.fit(Logged(), ckpt_path=path)
    return trainer.global_step


def test_each_epoch_replaces_the_file(tmp_path: Path) -> None:
    checkpoint = EpochCheckpoint(tmp_path / "supernet", ignore)
    assert checkpoint.last_model_path == ""

    trained(checkpoint, 2)

    assert checkpoint.last_model_path == str(tmp_path / "supernet" / NAME)
    assert [one.name for one in (tmp_path / "supernet").iterdir()] == [NAME]
    content = torch.load(checkpoint.last_model_path, weights_only=True)
    assert content["global_step"] == 2


def test_epoch_without_a_report_is_reported_by_what_was_logged(tmp_path: Path) -> None:
    reports: list[object] = []

    trained(EpochCheckpoint(tmp_path, reports.append), 2)

    assert reports == [
        {"default": 0.0, "epoch_number": 0.0},
        {"default": 1.0, "epoch_number": 1.0},
    ]


def test_epoch_with_a_report_has_no_other_one(tmp_path: Path) -> None:
    reports: list[object] = []
    checkpoint = EpochCheckpoint(tmp_path, reports.append)
    checkpoint.note(0.5)

    trained(checkpoint, 1)

    assert reports == [0.5]
    assert checkpoint.last_metric == 0.5


def test_next_attempt_goes_on_and_reports_the_earlier_epochs_again(tmp_path: Path) -> None:
    first = EpochCheckpoint(tmp_path, ignore)
    trained(first, 1)
    reports: list[dict[str, float]] = []
    second = EpochCheckpoint(tmp_path, reports.append)  # type: ignore[arg-type] # metrics of epochs

    steps = trained(second, 3, first.last_model_path)

    assert steps == 3
    assert [one["epoch_number"] for one in reports] == [0.0, 1.0, 2.0]


def test_number_to_maximise_is_no_probability_and_no_loss() -> None:
    assert epoch_metric({}) is None
    measured = epoch_metric({"prob/a/0": 0.9, "train_loss": 0.7, "val/acc": 0.5})
    assert measured is not None
    assert measured["default"] == 0.5
    given = epoch_metric({"acc": 0.5, "default": 0.25})
    assert given == {"default": 0.25, "acc": 0.5}
    assert (epoch_metric({"prob/a/0": 0.9}) or {})["default"] == 0.0
