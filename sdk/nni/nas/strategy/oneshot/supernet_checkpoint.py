"""Checkpoint of a supernet, from which another attempt of its trial goes on, also in mid-epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytorch_lightning
from pytorch_lightning.callbacks import Checkpoint

from nni.durable_files import replace_durably
from nni.nas.strategy.oneshot.random_states import random_states, restore_random_states
from nni.nas.strategy.oneshot.resumable_loader import ResumableLoaders

NAME: Final = "last.ckpt"
"""Name of the file."""
EVERY_S: Final = 30.0
"""Time between two checkpoints within an epoch: work that a kill costs at most."""
_CHEAP_S: Final = 1.5
"""Time that a checkpoint may take; the interval grows with it, so that a training is not slowed
down by more than a twentieth."""
_REPORTED: Final = "reported"
_RANDOM: Final = "random_states"
_DEFAULT: Final = "default"
_LOSS: Final = "loss"
_PROBABILITY: Final = "prob/"
"""Begin of the names under which strategies log the probabilities of choices."""


class SupernetCheckpoint(Checkpoint):
    """Callback of Lightning that replaces one checkpoint in one step, after epochs and within them.

    A process that is killed at any moment leaves the old or the new checkpoint. It holds the
    metrics that were reported, too, which are reported again by the process that goes on: the
    platform drops those of an attempt that was lost. An epoch in which the evaluator reports none,
    as without a validation, is reported by what was logged in it.

    Within an epoch a checkpoint follows a batch if enough time has passed, or if the process got
    TERM, provided that the loaders are resumable. It holds the states of all random numbers, so
    that the process that goes on computes what this one would have. Means over the epoch of values
    that are logged in training are those of the rest of the epoch then.

    Args:
        folder: of the checkpoint; made at the first one.
        report: receives metrics.
        loaders: loaders of the training; None: there is no checkpoint within epochs.
        complete: called with the number of steps when a checkpoint is complete.
        every_s: least time between two checkpoints within an epoch, in seconds.
        monotonic_s: returns the time in seconds.
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[object], object],
        loaders: ResumableLoaders | None = None,
        complete: Callable[[int], object] = lambda _step: None,
        every_s: float = EVERY_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = folder / NAME
        self._report = report
        self._loaders = loaders
        self._complete = complete
        self._every_s = every_s
        self._monotonic_s = monotonic_s
        self._next_s = monotonic_s() + every_s
        self._reported: list[Any] = []
        self._in_last_epoch = 0
        self._random: Mapping[str, Any] | None = None
        """Random states of a loaded checkpoint, until the training begins."""

    @property
    def last_metric(self) -> Any:  # noqa: ANN401 - any JSON value
        """Metric that was reported last; None before the first."""
        return self._reported[-1] if self._reported else None

    @property
    def last_model_path(self) -> str:
        """Path of the checkpoint; empty before the first, as with callbacks of Lightning."""
        return str(self.path) if self.path.is_file() else ""

    def note(self, metric: object) -> None:
        """Report a metric, and remember it for later attempts.

        Args:
            metric: plain JSON value.
        """
        self._reported.append(metric)
        self._report(metric)

    def on_train_start(
        self, trainer: pytorch_lightning.Trainer, pl_module: pytorch_lightning.LightningModule
    ) -> None:
        """Restore the random states of a loaded checkpoint, if one was loaded."""
        del trainer, pl_module
        if self._random is not None:
            restore_random_states(self._random)
            self._random = None

    def on_train_batch_end(
        self,
        trainer: pytorch_lightning.Trainer,
        pl_module: pytorch_lightning.LightningModule,
        outputs: Any,  # noqa: ANN401 - any result of a step
        batch: Any,  # noqa: ANN401 - any batch
        batch_idx: int,
    ) -> None:
        """Write a checkpoint within the epoch, if it is time, or if the process is to end."""
        del pl_module, outputs, batch
        due = trainer.received_sigterm or self._monotonic_s() >= self._next_s
        if due and self._may_stop_after(trainer, batch_idx):
            self._save(trainer)

    def _may_stop_after(self, trainer: pytorch_lightning.Trainer, batch_idx: int) -> bool:
        """Return whether a run can resume after a batch: loaders resumable, stepped, not the last.

        After the last batch the end of the epoch follows, with a checkpoint of its own.
        """
        if self._loaders is None or not self._loaders.complete or trainer.world_size > 1:
            return False
        stepped = (batch_idx + 1) % trainer.accumulate_grad_batches == 0
        return stepped and not trainer.is_last_batch

    def on_train_epoch_end(
        self, trainer: pytorch_lightning.Trainer, pl_module: pytorch_lightning.LightningModule
    ) -> None:
        """Report what was logged if the epoch had no report; write the checkpoint."""
        del pl_module
        if len(self._reported) == self._in_last_epoch:
            metric = epoch_metric(trainer.callback_metrics)
            if metric is not None:
                self.note(metric)
        self._in_last_epoch = len(self._reported)
        if self._loaders is not None:
            self._loaders.end_pass()
        self._save(trainer)

    def _save(self, trainer: pytorch_lightning.Trainer) -> None:
        begin_s = self._monotonic_s()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        trainer.save_checkpoint(draft)  # by each process: the parts of the state may be spread
        if trainer.is_global_zero:
            replace_durably(draft, self.path)
            self._complete(trainer.global_step)
        now_s = self._monotonic_s()
        self._next_s = now_s + self._every_s * max(1.0, (now_s - begin_s) / _CHEAP_S)

    def state_dict(self) -> dict[str, Any]:
        """Return the metrics that were reported, and the states of the random numbers."""
        return {_REPORTED: list(self._reported), _RANDOM: random_states()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Report the metrics of an earlier attempt again; keep its random states for the start.

        Args:
            state_dict: what `state_dict` returned.
        """
        for metric in state_dict[_REPORTED]:
            self.note(metric)
        self._in_last_epoch = len(self._reported)
        self._random = state_dict.get(_RANDOM)


def epoch_metric(logged: Mapping[str, Any]) -> dict[str, float] | None:
    """Return all that an epoch logged, with a `default` to maximise; None if nothing was logged.

    Its `default` is what was logged by this name, else the first metric that is neither a loss nor
    the probability of a choice, else the negative first loss: a search maximises.

    Args:
        logged: scalars by name.

    Examples:
        >>> epoch_metric({"train_loss": 0.7, "train_acc": 0.5})
        {'default': 0.5, 'train_loss': 0.7, 'train_acc': 0.5}
        >>> epoch_metric({"loss": 0.7})
        {'default': -0.7, 'loss': 0.7}
    """
    values = {name: float(value) for name, value in logged.items()}
    if not values:
        return None
    measured = [name for name in values if not name.startswith(_PROBABILITY)]
    metrics = [values[name] for name in measured if not name.endswith(_LOSS)]
    losses = [-values[name] for name in measured if name.endswith(_LOSS)]
    default = next(iter([*metrics, *losses]), 0.0)
    return {_DEFAULT: values.get(_DEFAULT, default), **values}
