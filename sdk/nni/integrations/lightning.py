"""Callback of PyTorch Lightning: reports metrics, stops a trial early, saves checkpoints.

Needs the extra `nni[lightning]`. Works with `pytorch_lightning`, or with `lightning.pytorch` where
that alone is installed.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import nni
from nni.integrations._extras import missing_extra
from nni.integrations._training_reports import (
    FinalResult,
    MetricNames,
    StoppableTrial,
    TrainingReports,
)

if TYPE_CHECKING:
    from pytorch_lightning import Callback, LightningModule, Trainer
else:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        try:
            from lightning.pytorch import Callback
        except ImportError as error:
            raise missing_extra("LightningCallback", "PyTorch Lightning", "lightning") from error

__all__ = ["LightningCallback"]

_FILE = "lightning.ckpt"


class LightningCallback(Callback):
    """Callback of a Lightning trainer: reports to a trial, ends training early, saves checkpoints.

    After each validation, or each epoch of a training without one, it reports metrics that the
    module has logged, and at the end the result. Only the process of rank zero reports and copies
    checkpoints; all ranks stop together.

    Args:
        metric: name under which the module logs the metric, as in `self.log("val_loss", ...)`; or a
            dict of key in the report to such a name, for several objectives or further figures.
        trial: trial of `nni.hpo.optimize`, which may stop the training. None: the trial of this
            process, which an experiment stops by ending the process; outside an experiment reports
            are printed.
        final: report that is the result of the trial: `last`, or the one with the `min` or `max`
            of `default`.
        checkpoints: whether to save a checkpoint at the end of each epoch; see `checkpoint_path`.

    Raises:
        ValueError: an argument is wrong; in a training, a metric has not been logged.
        TypeError: `metric` is neither a name nor a dict.

    Examples:
        >>> from nni.integrations import LightningCallback
        >>> callback = LightningCallback("val_loss", final="min")
        >>> callback.result is None
        True

        In a trial, with `module` being a `LightningModule`:

            callback = LightningCallback("val_loss", checkpoints=True)
            trainer = Trainer(max_epochs=20, callbacks=[callback])
            trainer.fit(module, ckpt_path=callback.checkpoint_path)
    """

    def __init__(
        self,
        metric: MetricNames,
        *,
        trial: StoppableTrial | None = None,
        final: FinalResult = "last",
        checkpoints: bool = False,
    ) -> None:
        super().__init__()
        self._reports = TrainingReports(metric, trial, final)
        self._checkpoints = checkpoints

    @property
    def result(self) -> Any:  # noqa: ANN401 - a number or a dict
        """Result of the training so far, for an objective to return; None before a report."""
        return self._reports.result

    @property
    def checkpoint_path(self) -> Path | None:
        """Checkpoint of an earlier attempt of this trial, for `fit`; None if there is none.

        It holds model, optimisers, loops and random states as Lightning saves them, and the result
        so far. See `nni.checkpoint_directory`.
        """
        path = nni.checkpoint_directory() / _FILE
        return path if path.exists() else None

    def on_validation_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Report the metrics after a validation within `fit`; stop all ranks if due.

        Args:
            trainer: of the training.
            pl_module: that is trained.
        """
        del pl_module
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._report(trainer)

    def on_train_epoch_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Report the metrics if there is no validation; save a checkpoint if enabled.

        Args:
            trainer: of the training.
            pl_module: that is trained.
        """
        del pl_module
        if not trainer.enable_validation:
            self._report(trainer)
        if self._checkpoints:
            self._save(trainer)

    def on_fit_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Report the result, on rank zero only.

        Args:
            trainer: of the training.
            pl_module: that was trained.
        """
        del pl_module
        if trainer.is_global_zero:
            self._reports.finish()

    def state_dict(self) -> dict[str, Any]:
        """Return the result so far, for a checkpoint.

        Returns:
            The result so far.
        """
        return {"result": self._reports.result}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the result so far from a checkpoint.

        Args:
            state_dict: return value of `state_dict`.
        """
        self._reports.result = state_dict["result"]

    def _report(self, trainer: "Trainer") -> None:
        stop = trainer.is_global_zero and self._reports.step(trainer.callback_metrics)
        # One rank decides; a rank that went on alone would wait for the others for ever.
        if trainer.strategy.reduce_boolean_decision(stop, all=False):
            trainer.should_stop = True

    def _save(self, trainer: "Trainer") -> None:
        trainer.save_checkpoint(nni.checkpoint_directory() / _FILE)  # a collective of all ranks
        if trainer.is_global_zero:
            nni.save_checkpoint(step=trainer.global_step)
        trainer.strategy.barrier()  # no rank writes while the folder is copied
