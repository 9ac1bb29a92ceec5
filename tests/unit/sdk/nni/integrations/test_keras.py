import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nni.hpo import TrialReporter, optimize
from tests.support.stopping_trial import StoppingTrial
from tests.support.trial_metrics import Metrics, metrics

pytest.importorskip("keras", reason="run by .ci/integrations")

import keras

from nni.integrations import KerasCallback

__all__ = ["metrics"]  # a fixture

# Keras 3.15 saves tensors of torch 2.13 by an interface that numpy 2 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

INPUTS = np.linspace(-1, 1, 48, dtype="float32").reshape(-1, 3)
TARGETS = INPUTS.sum(1)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Failure(keras.callbacks.Callback):  # type: ignore[misc] # Keras ships no types
    """Failure in an epoch, as of a trial whose machine is taken away."""

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == self.epoch:
            raise RuntimeError("the machine is gone")


def new_model(rate: float = 0.05) -> Any:
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(keras.optimizers.Adam(rate), "mse")
    return model


def fit(*callbacks: Any, epochs: int = 2, rate: float = 0.05, **words: Any) -> list[float]:
    """Return the losses of the validations."""
    history = new_model(rate).fit(
        INPUTS,
        TARGETS,
        epochs=epochs,
        batch_size=8,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
        **{"validation_data": (INPUTS, TARGETS), **words},
    )
    losses: list[float] = history.history.get("val_loss", history.history["loss"])
    return losses


def go_on(callback: KerasCallback, **words: Any) -> list[float]:
    return fit(callback, initial_epoch=callback.initial_epoch, **words)


def test_each_epoch_and_the_end_are_reported(metrics: Metrics) -> None:
    losses = fit(KerasCallback("val_loss"))

    kinds, values = zip(*metrics, strict=True)
    assert kinds == ("PERIODICAL", "PERIODICAL", "FINAL")
    assert values == (losses[0], losses[1], losses[1])


def test_a_training_without_validation_reports_its_own_metrics(metrics: Metrics) -> None:
    losses = fit(KerasCallback({"default": "loss"}), validation_data=None)

    assert [value["default"] for _, value in metrics] == [*losses, losses[-1]]


def test_epochs_without_their_validation_are_not_reported(metrics: Metrics) -> None:
    losses = fit(KerasCallback({"default": "val_loss", "own": "loss"}), validation_freq=2)

    assert [value["default"] for _, value in metrics] == [losses[0], losses[0]]


def test_a_metric_of_no_validation_is_an_error_at_the_end(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match=r"got 'val_loss'; it logs loss"):
        fit(KerasCallback("val_loss"), validation_data=None)

    assert metrics == []


def test_a_metric_that_is_not_logged_is_an_error_with_the_known_ones(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match=r"got 'val_acc'; it logs loss, val_loss"):
        fit(KerasCallback("val_acc"))


def test_the_next_attempt_goes_on_as_if_there_had_been_one(metrics: Metrics) -> None:
    expected = fit(epochs=4)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        fit(KerasCallback("val_loss", checkpoints=True), Failure(2), epochs=4)
    metrics.clear()

    losses = go_on(KerasCallback("val_loss", checkpoints=True), epochs=4)

    # The same operations on the same numbers, with the state of the optimiser.
    assert losses == pytest.approx(expected[2:], rel=1e-5)
    assert [value for _, value in metrics] == [*losses, losses[-1]]


def test_the_next_attempt_knows_the_best_result_so_far(metrics: Metrics) -> None:
    first = fit(KerasCallback("val_loss", checkpoints=True, final="max"))
    metrics.clear()

    go_on(KerasCallback("val_loss", checkpoints=True, final="max"), epochs=3)

    assert metrics[-1] == ("FINAL", first[0])


def test_an_attempt_after_the_last_epoch_reports_the_result(metrics: Metrics) -> None:
    losses = fit(KerasCallback("val_loss", checkpoints=True))
    metrics.clear()

    callback = KerasCallback("val_loss", checkpoints=True)
    new_model().fit(
        INPUTS,
        TARGETS,
        epochs=2,
        initial_epoch=callback.initial_epoch,
        verbose=0,
        callbacks=[callback],
    )

    assert metrics == [("FINAL", losses[-1])]


def test_a_training_that_begins_anew_in_spite_of_a_checkpoint_is_an_error(metrics: Metrics) -> None:
    fit(KerasCallback("val_loss", checkpoints=True))

    with pytest.raises(ValueError, match=r"initial_epoch must be 2, .*got 0; pass initial_epoch="):
        fit(KerasCallback("val_loss", checkpoints=True))


def test_checkpoints_of_trials_that_share_a_process_are_refused() -> None:
    with pytest.raises(ValueError, match="checkpoints must be False with a trial of optimize"):
        KerasCallback("val_loss", trial=StoppingTrial(), checkpoints=True)


def test_a_backend_that_is_missing_is_an_error_that_names_the_variable() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import nni.integrations; nni.integrations.KerasCallback('loss')"],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "set the environment variable KERAS_BACKEND=torch" in done.stderr


def test_a_trial_of_optimize_stops_the_training(metrics: Metrics) -> None:
    epochs: list[int] = []

    def objective(parameters: Any, trial: TrialReporter) -> Any:
        callback = KerasCallback("val_loss", trial=trial, final="min")
        epochs.append(len(fit(callback, epochs=5, rate=parameters["rate"])))
        return callback.result

    space = {"rate": {"_type": "choice", "_value": [0.05, 0.1, 1e-6]}}
    found = optimize(objective, space, tuner="GridSearch", assessor="Medianstop")

    assert metrics == []
    assert found.trials[-1].status == "EARLY_STOPPED"
    assert epochs[:2] == [5, 5]
    assert epochs[2] < 5
