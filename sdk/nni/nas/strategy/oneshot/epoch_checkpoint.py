"""Checkpoint of a supernet after each epoch, from which another attempt of its trial goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytorch_lightning
from pytorch_lightning.callbacks import Checkpoint

from nni.durable_files import replace_durably

NAME: Final = "last.ckpt"
"""Name of the file."""
_REPORTED: Final = "reported"
_DEFAULT: Final = "default"
_LOSS: Final = "loss"
_PROBABILITY: Final = "prob/"
"""Begin of the names under which strategies log the probabilities of choices."""


class EpochCheckpoint(Checkpoint):
    """Callback of Lightning that replaces one checkpoint in one step at the end of each epoch.

    A process that is killed at any moment leaves the old or the new checkpoint. It holds the
    metrics that were reported, too, which are reported again by the process that goes on: the
    platform drops those of an attempt that was lost. An epoch in which the evaluator reports none,
    as without a validation, is reported by what was logged in it.

    Args:
        folder: of the checkpoint; made at the first one.
        report: receives metrics.
    """

    def __init__(self, folder: Path, report: Callable[[object], object]) -> None:
        self.path = folder / NAME
        self._report = report
        self._reported: list[Any] = []
        self._in_last_epoch = 0

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

    def on_train_epoch_end(
        self, trainer: pytorch_lightning.Trainer, pl_module: pytorch_lightning.LightningModule
    ) -> None:
        """Write the checkpoint; the validation of the epoch has ended."""
        del pl_module
        if len(self._reported) == self._in_last_epoch:
            metric = epoch_metric(trainer.callback_metrics)
            if metric is not None:
                self.note(metric)
        self._in_last_epoch = len(self._reported)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        trainer.save_checkpoint(draft)  # by each process: the parts of the state may be spread
        if trainer.is_global_zero:
            replace_durably(draft, self.path)

    def state_dict(self) -> dict[str, Any]:
        """Return the metrics that were reported."""
        return {_REPORTED: list(self._reported)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Report the metrics of an earlier attempt again.

        Args:
            state_dict: what `state_dict` returned.
        """
        for metric in state_dict[_REPORTED]:
            self.note(metric)
        self._in_last_epoch = len(self._reported)


def epoch_metric(logged: Mapping[str, Any]) -> dict[str, float] | None:
    """Return an intermediate result with all that was logged in an epoch; None: nothing was.

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
