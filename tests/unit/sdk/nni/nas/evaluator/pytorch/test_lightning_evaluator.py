import signal
from typing import Any

import pytest
import pytorch_lightning
import torch
import torch.utils.data
from pytorch_lightning.callbacks import Callback, EarlyStopping

import nni
from nni.nas.evaluator.pytorch import (
    Classification,
    ClassificationModule,
    Lightning,
    LightningModule,
    Trainer,
)
from tests.support.lightning_tasks import QUIET, Points, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Data(pytorch_lightning.LightningDataModule):
    def train_dataloader(self) -> Any:
        return loader(16)

    def val_dataloader(self) -> Any:
        return loader(8)


class Interrupted(Callback):
    def on_train_batch_start(self, *args: Any) -> None:
        raise KeyboardInterrupt


class Failing(Callback):
    def on_train_batch_start(self, *args: Any) -> None:
        raise ValueError("no more disk")


@nni.trace
class Own(LightningModule):
    """Module that reports by itself, as the documentation of NNI shows."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        del batch_idx
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        del batch_idx
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("val_loss", loss)

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.rate)

    def on_validation_epoch_end(self) -> None:
        nni.report_intermediate_result(self.trainer.callback_metrics["val_loss"].item())

    def teardown(self, stage: str) -> None:
        if stage == "fit":
            nni.report_final_result(self.trainer.callback_metrics["val_loss"].item())


def module() -> Any:
    return ClassificationModule(learning_rate=0.1, num_classes=2)


def evaluator(*callbacks: Callback, **kwargs: Any) -> Any:
    trainer = Trainer(max_epochs=3, callbacks=list(callbacks), **QUIET)
    arguments = {"train_dataloaders": loader(), "val_dataloaders": loader(24), **kwargs}
    return Lightning(module(), trainer, **arguments)


def test_each_model_is_trained_from_the_start() -> None:
    made = evaluator()

    first = reports_of(lambda: made.evaluate(network()))
    second = reports_of(lambda: made.evaluate(network()))

    assert len(first[0]) == 3
    assert first == second


def test_callbacks_of_the_next_model_are_in_their_first_state() -> None:
    # The metric rises by less than the threshold, so that the training stops after two epochs.
    made = evaluator(EarlyStopping("val_acc", mode="max", min_delta=1.0, patience=1))

    lengths = [len(reports_of(lambda: made.evaluate(network()))[0]) for _ in range(2)]

    assert lengths == [2, 2]


def test_the_data_module_has_precedence() -> None:
    made = evaluator(datamodule=Data(), train_dataloaders=None)

    assert len(reports_of(lambda: made.evaluate(network()))[0]) == 3


def test_arguments_of_fit_are_passed_on() -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        evaluator(fit_kwargs={"no_such_argument": 1}).evaluate(network())


def test_an_own_module_trains_and_reports() -> None:
    trainer = Trainer(max_epochs=2, **QUIET)
    made: Any = Lightning(Own(nni.choice("rate", [0.0, 0.5])), trainer, loader(), loader())

    frozen = made.freeze({"rate": 0.5})
    intermediates, finals = reports_of(lambda: frozen.evaluate(network()))

    assert list(made.simplify()) == ["rate"]
    assert intermediates[1] < intermediates[0]
    assert finals == [intermediates[1]]


def test_a_mutable_evaluator_must_be_frozen() -> None:
    trainer = Trainer(max_epochs=nni.choice("epochs", [1, 2]), **QUIET)
    made = Lightning(module(), trainer, loader())

    with pytest.raises(RuntimeError, match="must be frozen before it evaluates a model"):
        made.evaluate(network())


def test_an_untraced_trainer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"trainer must be made by nni\.nas\.evaluator"):
        Lightning(module(), pytorch_lightning.Trainer(**QUIET))


def test_a_module_whose_model_cannot_be_set_is_refused() -> None:
    plain: Any = pytorch_lightning.LightningModule()

    with pytest.raises(TypeError, match="lightning_module must be a nni"):
        Lightning(plain, Trainer(**QUIET))


def test_an_untraced_loader_warns() -> None:
    with pytest.warns(RuntimeWarning, match="a DataLoader is not traced"):
        evaluator(train_dataloaders=torch.utils.data.DataLoader(Points(4)))


def test_the_deprecated_names_work() -> None:
    with pytest.warns(DeprecationWarning, match="use train_dataloaders"):
        made = evaluator(train_dataloader=loader(16), train_dataloaders=None)
    with pytest.warns(DeprecationWarning, match="use evaluate"):
        intermediates, _ = reports_of(lambda: made.fit(network()))
    assert len(intermediates) == 3
    with pytest.raises(ValueError, match="give train_dataloaders only"):
        evaluator(train_dataloader=loader())


def test_an_interrupt_reaches_the_caller_and_the_next_one_too() -> None:
    handler = signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        evaluator(Interrupted()).evaluate(network())

    assert signal.getsignal(signal.SIGINT) is handler


def test_lightning_hides_an_interrupt_on_request() -> None:
    handler = signal.getsignal(signal.SIGINT)

    with pytest.raises(SystemExit):
        evaluator(Interrupted(), detect_interrupt=False).evaluate(network())

    signal.signal(signal.SIGINT, handler)


def test_an_error_of_the_training_stays_itself() -> None:
    with pytest.raises(ValueError, match="no more disk"):
        evaluator(Failing()).evaluate(network())


def test_an_evaluator_travels_as_a_call() -> None:
    made = evaluator()

    loaded = nni.load(nni.dump(made, pickle_size_limit=0))

    assert reports_of(lambda: loaded.evaluate(network())) == reports_of(
        lambda: made.evaluate(network())
    )


def test_several_loaders_and_no_cwd_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = Classification(
        num_classes=2, train_dataloaders=[loader(8), loader(8)], max_epochs=1, **QUIET
    )

    assert made.module.learning_rate == 0.001
    assert list(tmp_path.iterdir()) == []
