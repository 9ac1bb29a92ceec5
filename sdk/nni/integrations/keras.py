"""Callback of Keras 3: reports metrics, stops a trial early, saves checkpoints.

Needs the extra `nni[keras]`, which has the backend torch: set the variable `KERAS_BACKEND=torch`.
"""

import json
from collections.abc import Mapping
from typing import Any

import nni
from nni.integrations._extras import missing_extra
from nni.integrations._training_reports import (
    FinalResult,
    MetricNames,
    StoppableTrial,
    TrainingReports,
)

_import_error: ModuleNotFoundError | None = None
try:
    from keras.callbacks import Callback
except ModuleNotFoundError as error:
    # The class has a reference without Keras, too; its constructor raises the error.
    Callback, _import_error = object, error

__all__ = ["KerasCallback"]

_WEIGHTS = "keras.weights.h5"
_PROGRESS = "keras.json"
_VALIDATION = "val_"
"""Begin of the names that Keras gives to the metrics of a validation."""


class KerasCallback(Callback):  # type: ignore[misc] # Keras ships no types
    """Callback of Keras's `fit`: reports to a trial, ends training early, saves checkpoints.

    After each epoch it reports metrics, and at the end the result. Epochs that have no validation,
    as with `validation_freq=2`, are not reported if the metric needs one. For trainings in one
    process.

    Args:
        metric: name of the metric in the history of Keras, as in `val_loss`; or a dict of key in
            the report to such a name, for several objectives or further figures.
        trial: trial of `nni.hpo.optimize`, which may stop the training. None: the trial of this
            process, which an experiment stops by ending the process; outside an experiment reports
            are printed.
        final: report that is the result of the trial: `last`, or the one with the `min` or `max`
            of `default`.
        checkpoints: whether to save a checkpoint at the end of each epoch, and to go on from that
            of an earlier attempt; `fit` must get `initial_epoch=callback.initial_epoch`. Not with
            `trial`, because trials in one process share the folder.

    Raises:
        ValueError: an argument is wrong; in a training, a metric is missing, or `initial_epoch` is
            not that of the checkpoint.
        TypeError: `metric` is neither a name nor a dict.
        ImportError: Keras is missing, or its backend.

    Examples:
        ```python
        import os

        os.environ["KERAS_BACKEND"] = "torch"  # before Keras is imported
        import keras
        import numpy as np

        from nni.integrations import KerasCallback

        inputs = np.linspace(-1, 1, 96, dtype="float32").reshape(-1, 3)
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        callback = KerasCallback("val_loss", final="min", checkpoints=True)
        model.fit(
            inputs,
            inputs.sum(1),
            validation_split=0.2,
            epochs=3,
            initial_epoch=callback.initial_epoch,
            callbacks=[callback],
        )
        print(callback.result)
        ```
    """

    def __init__(
        self,
        metric: MetricNames,
        *,
        trial: StoppableTrial | None = None,
        final: FinalResult = "last",
        checkpoints: bool = False,
    ) -> None:
        if _import_error is not None:
            raise _unusable(_import_error) from _import_error
        super().__init__()
        self._reports = TrainingReports(metric, trial, final)
        self._names = [metric] if isinstance(metric, str) else list(metric.values())
        if checkpoints and trial is not None:
            raise ValueError(
                "checkpoints must be False with a trial of optimize, got True; trials in one "
                "process share the folder: run an experiment"
            )
        self._checkpoints = checkpoints
        self._initial_epoch = 0
        self._must_load = self._must_check = False
        progress = _saved_progress() if checkpoints else None
        if progress is not None:
            self._initial_epoch = int(progress["epochs"])
            self._reports.result = progress["result"]
            self._must_load = True

    @property
    def result(self) -> Any:  # noqa: ANN401 - a number or a dict
        """Result of the training so far, for an objective to return; None before a report."""
        return self._reports.result

    @property
    def initial_epoch(self) -> int:
        """Number of epochs in the checkpoint, for `fit`; 0 if there is none.

        The checkpoint holds the weights of model and optimiser, and the result so far. See
        `nni.checkpoint_directory`.
        """
        return self._initial_epoch

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Load weights and optimizer from an earlier attempt's checkpoint, once, if there is one.

        Args:
            logs: not used.
        """
        del logs
        if not self._must_load:
            return
        self._must_load, self._must_check = False, True
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)  # or its state is left out
        self.model.load_weights(nni.checkpoint_directory() / _WEIGHTS)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Raise unless the first epoch is the one after those of the checkpoint.

        Args:
            epoch: number of the epoch, from 0.
            logs: not used.

        Raises:
            ValueError: the training begins with another epoch.
        """
        del logs
        if self._must_check and epoch != self._initial_epoch:
            raise ValueError(
                f"initial_epoch must be {self._initial_epoch}, the epochs in the checkpoint, got "
                f"{epoch}; pass initial_epoch=callback.initial_epoch to fit"
            )
        self._must_check = False

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Report an epoch's metrics; stop the training if due; save a checkpoint if enabled.

        Args:
            epoch: number of the epoch, from 0.
            logs: metrics by name.

        Raises:
            ValueError: a metric to report is missing.
        """
        values = logs or {}
        if not self._lacks_validation(values) and self._reports.step(values):
            self.model.stop_training = True
        if self._checkpoints:
            self._save(epoch + 1)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Report the result; raise ValueError if no epoch had the metric.

        Args:
            logs: metrics of the last epoch, by name.

        Raises:
            ValueError: no epoch had the validation that the metric needs.
        """
        if logs and self._reports.result is None:
            self._reports.step(logs)  # names the metric that is missing
        self._reports.finish()

    def _lacks_validation(self, values: Mapping[str, Any]) -> bool:
        """Return whether a metric is one of a validation, and the epoch had none."""
        needed = any(name.startswith(_VALIDATION) for name in self._names)
        return needed and not any(name.startswith(_VALIDATION) for name in values)

    def _save(self, epochs: int) -> None:
        folder = nni.checkpoint_directory()
        self.model.save_weights(folder / _WEIGHTS, overwrite=True)
        progress = {"epochs": epochs, "result": self._reports.result}
        (folder / _PROGRESS).write_text(json.dumps(progress), "utf-8")
        nni.save_checkpoint(step=epochs)


def _unusable(error: ModuleNotFoundError) -> ImportError:
    """Return the error of a callback whose library, or its backend, cannot be imported."""
    if error.name is None or error.name.partition(".")[0] == "keras":
        return missing_extra("KerasCallback", "Keras 3", "keras")
    return ImportError(
        f"nni.integrations.KerasCallback needs Keras with a backend that is installed, got: {error}"
        "; set the environment variable KERAS_BACKEND=torch"
    )


def _saved_progress() -> dict[str, Any] | None:
    """Return epochs and result of the checkpoint; None if there is none."""
    path = nni.checkpoint_directory() / _PROGRESS
    if not path.exists():
        return None
    progress: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return progress
