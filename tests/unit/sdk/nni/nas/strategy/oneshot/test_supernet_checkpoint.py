"""Checkpoints of supernets after each epoch and within epochs."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning
import torch
from pytorch_lightning.demos.boring_classes import BoringModel

from nni.nas.strategy.oneshot.resumable_loader import ResumableLoaders
from nni.nas.strategy.oneshot.supernet_checkpoint import NAME, SupernetCheckpoint, epoch_metric
from nni.testing.oneshot_strategies import quiet_lightning
from tests.support.lightning_tasks import QUIET


def ignore(_metric: object) -> None:
    """Do nothing with a report."""


class Logged(BoringModel):
    """Module that logs the number of the epoch."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("epoch_number", float(self.current_epoch), on_step=False, on_epoch=True)
        return super().training_step(batch, batch_idx)


def trained(
    checkpoint: SupernetCheckpoint,
    epochs: int,
    path: str | None = None,
    module: BoringModel | None = None,
    **options: Any,
) -> int:
    """Train with a checkpoint after each epoch; return the number of steps, one per epoch."""
    options = {"limit_train_batches": 1, **options}
    with torch.random.fork_rng(devices=[]), quiet_lightning():
        trainer = pytorch_lightning.Trainer(
            max_epochs=epochs, limit_val_batches=0, **options, **QUIET
        )
        trainer.callbacks.append(checkpoint)  # type: ignore[attr-defined] # Lightning sets it
        trainer.fit(module or Logged(), ckpt_path=path)
    return trainer.global_step


def test_each_epoch_replaces_the_file(tmp_path: Path) -> None:
    checkpoint = SupernetCheckpoint(tmp_path / "supernet", ignore)
    assert checkpoint.last_model_path == ""

    trained(checkpoint, 2)

    assert checkpoint.last_model_path == str(tmp_path / "supernet" / NAME)
    assert [one.name for one in (tmp_path / "supernet").iterdir()] == [NAME]
    content = torch.load(checkpoint.last_model_path, weights_only=True)
    assert content["global_step"] == 2


def test_epoch_without_a_report_is_reported_by_what_was_logged(tmp_path: Path) -> None:
    reports: list[object] = []

    trained(SupernetCheckpoint(tmp_path, reports.append), 2)

    assert reports == [
        {"default": 0.0, "epoch_number": 0.0},
        {"default": 1.0, "epoch_number": 1.0},
    ]


def test_epoch_with_a_report_has_no_other_one(tmp_path: Path) -> None:
    reports: list[object] = []
    checkpoint = SupernetCheckpoint(tmp_path, reports.append)
    checkpoint.note(0.5)

    trained(checkpoint, 1)

    assert reports == [0.5]
    assert checkpoint.last_metric == 0.5


def test_next_attempt_goes_on_and_reports_the_earlier_epochs_again(tmp_path: Path) -> None:
    first = SupernetCheckpoint(tmp_path, ignore)
    trained(first, 1)
    reports: list[dict[str, float]] = []
    second = SupernetCheckpoint(tmp_path, reports.append)  # type: ignore[arg-type] # metrics of epochs

    steps = trained(second, 3, first.last_model_path)

    assert steps == 3
    assert [one["epoch_number"] for one in reports] == [0.0, 1.0, 2.0]


class Resumable(BoringModel):
    """Module whose loader is resumable; it gets TERM in the step of some batch."""

    def __init__(self, loaders: ResumableLoaders, term: int = -1) -> None:
        super().__init__()
        self._loaders = loaders
        self._term = term

    def train_dataloader(self) -> Any:
        return self._loaders.wrap(super().train_dataloader())

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if batch_idx == self._term:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().training_step(batch, batch_idx)


def saved_steps(tmp_path: Path, every_s: float, **options: Any) -> list[int]:
    """Return the steps after which five batches of an epoch at one second each were saved."""
    seconds = itertools.count()
    steps: list[int] = []
    loaders = ResumableLoaders()
    checkpoint = SupernetCheckpoint(
        tmp_path, ignore, loaders, steps.append, every_s, lambda: float(next(seconds))
    )
    trained(checkpoint, 1, None, Resumable(loaders), limit_train_batches=5, **options)
    return steps


def test_batches_are_followed_by_a_checkpoint_when_it_is_time(tmp_path: Path) -> None:
    # The clock is read at the begin, after each batch, and around each checkpoint: it shows 0 at
    # the begin, 1, 2 and 3 after batches, and 4 and 5 around the checkpoint of the third one.
    assert saved_steps(tmp_path, every_s=3.0) == [3, 5]


def test_the_last_batch_has_no_checkpoint_beside_that_of_the_epoch(tmp_path: Path) -> None:
    assert saved_steps(tmp_path, every_s=0.0) == [1, 2, 3, 4, 5]


def test_batch_whose_gradients_are_kept_has_no_checkpoint(tmp_path: Path) -> None:
    assert saved_steps(tmp_path, every_s=0.0, accumulate_grad_batches=2) == [1, 2, 3]


def test_process_that_gets_term_saves_the_batch_that_it_is_in(tmp_path: Path) -> None:
    assert threading.current_thread() is threading.main_thread(), "Lightning handles TERM there"
    loaders = ResumableLoaders()
    steps: list[int] = []
    checkpoint = SupernetCheckpoint(tmp_path, ignore, loaders, steps.append)

    with pytest.raises(SystemExit):
        trained(checkpoint, 1, None, Resumable(loaders, term=2), limit_train_batches=5)

    assert steps == [3]


def test_number_to_maximise_is_no_probability_and_no_loss() -> None:
    assert epoch_metric({}) is None
    measured = epoch_metric({"prob/a/0": 0.9, "train_loss": 0.7, "val/acc": 0.5})
    assert measured is not None
    assert measured["default"] == 0.5
    given = epoch_metric({"acc": 0.5, "default": 0.25})
    assert given == {"default": 0.25, "acc": 0.5}
    assert (epoch_metric({"prob/a/0": 0.9}) or {})["default"] == 0.0
