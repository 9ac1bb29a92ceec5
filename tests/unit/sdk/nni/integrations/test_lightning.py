from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning
import torch
from pytorch_lightning import LightningModule, Trainer

from nni.hpo import TrialReporter, optimize
from nni.integrations import LightningCallback
from tests.support.lightning_tasks import QUIET, loader, network
from tests.support.trial_metrics import Metrics, metrics

__all__ = ["metrics"]  # a fixture

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Model(LightningModule):
    """Linear classifier that fails in an epoch, as a trial does whose machine is taken away."""

    def __init__(self, rate: float = 0.1, fails_in: int = -1) -> None:
        super().__init__()
        self.network = network()
        self.rate = rate
        self.fails_in = fails_in

    def training_step(self, batch: Any) -> torch.Tensor:
        if self.current_epoch == self.fails_in:
            raise RuntimeError("the machine is gone")
        loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch: Any) -> None:
        self.log("val_loss", torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1]))
        self.log("epoch_of_val", float(self.current_epoch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.network.parameters(), lr=self.rate)


def fit(
    callback: LightningCallback,
    *,
    epochs: int = 2,
    model: Model | None = None,
    **words: Any,
) -> Trainer:
    trainer = Trainer(max_epochs=epochs, callbacks=[callback], **{**QUIET, **words})
    trainer.fit(model or Model(), loader(16), loader(8), ckpt_path=_path_of(callback))
    return trainer


def _path_of(callback: LightningCallback) -> Path | None:
    return callback.checkpoint_path if callback._checkpoints else None


def test_each_validation_and_the_end_are_reported(metrics: Metrics) -> None:
    fit(LightningCallback("epoch_of_val"), num_sanity_val_steps=1)

    assert metrics == [("PERIODICAL", 0.0), ("PERIODICAL", 1.0), ("FINAL", 1.0)]


def test_without_validation_each_epoch_is_reported(metrics: Metrics) -> None:
    fit(LightningCallback({"default": "train_loss"}), limit_val_batches=0)

    assert [kind for kind, _ in metrics] == ["PERIODICAL", "PERIODICAL", "FINAL"]
    assert metrics[0][1]["default"] > metrics[1][1]["default"] > 0


def test_a_validation_outside_of_fit_is_not_reported(metrics: Metrics) -> None:
    trainer = Trainer(callbacks=[LightningCallback("val_loss")], **QUIET)

    trainer.validate(Model(), loader(8), verbose=False)

    assert metrics == []


def test_a_metric_that_is_not_logged_is_an_error_with_the_known_ones(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match=r"got 'acc'; it logs epoch_of_val, train_loss"):
        fit(LightningCallback("acc"))


def test_a_process_of_another_rank_reports_nothing(metrics: Metrics) -> None:
    class Strategy(pytorch_lightning.strategies.SingleDeviceStrategy):
        is_global_zero = False

    strategy = Strategy("cpu")
    fit(LightningCallback("val_loss"), strategy=strategy, accelerator="auto")

    assert metrics == []


def test_the_next_attempt_goes_on_from_the_checkpoint(
    metrics: Metrics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failing = Model(fails_in=2)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        fit(LightningCallback("epoch_of_val", checkpoints=True), epochs=4, model=failing)
    lost = metrics.copy()
    metrics.clear()

    trainer = fit(LightningCallback("epoch_of_val", checkpoints=True, final="min"), epochs=4)

    assert lost == [("PERIODICAL", 0.0), ("PERIODICAL", 1.0)]
    assert metrics == [("PERIODICAL", 2.0), ("PERIODICAL", 3.0), ("FINAL", 1.0)]
    assert trainer.global_step == 4


def test_a_trial_of_optimize_stops_the_training(metrics: Metrics) -> None:
    epochs: list[int] = []

    def objective(parameters: Any, trial: TrialReporter) -> Any:
        callback = LightningCallback("val_loss", trial=trial, final="min")
        trainer = fit(callback, epochs=6, model=Model(parameters["rate"]))
        epochs.append(trainer.current_epoch)
        return callback.result

    space = {"rate": {"_type": "choice", "_value": [0.1, 0.5, 1e-6]}}
    found = optimize(objective, space, tuner="GridSearch", assessor="Medianstop")

    assert metrics == []
    assert found.trials[-1].status == "EARLY_STOPPED"
    assert epochs[:2] == [6, 6]
    assert epochs[2] < 6
    assert len(found.trials[-1].intermediate) == epochs[2]
