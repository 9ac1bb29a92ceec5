from typing import Any

import numpy as np
import pytest
from torch import nn
from torch.optim import SGD
from torch.utils.data import Dataset

import nni
import nni.nas.evaluator
import nni.nas.evaluator.pytorch.lightning as pl
from nni.nas.evaluator.pytorch import Classification, Regression
from tests.support.lightning_tasks import QUIET, loader, network, reports_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


def test_arguments_reach_module_trainer_and_loaders() -> None:
    train, held = loader(), loader(8)

    made: Any = Classification(
        nn.NLLLoss, 0.5, 0.25, SGD, train, held, num_classes=3, max_epochs=4, **QUIET
    )

    assert type(made.module.criterion) is nn.NLLLoss
    assert (made.module.learning_rate, made.module.weight_decay) == (0.5, 0.25)
    assert (made.module.optimizer, made.trainer.max_epochs) == (SGD, 4)
    assert (made.train_dataloaders, made.val_dataloaders) == (train, held)
    assert made.trace_kwargs["max_epochs"] == 4


def test_regression_reports_its_error() -> None:
    made = Regression(
        train_dataloaders=loader(classes=False),
        val_dataloaders=loader(classes=False),
        max_epochs=2,
        learning_rate=0.1,
        **QUIET,
    )

    intermediates, finals = reports_of(lambda: made.evaluate(network(1)))

    assert finals == [intermediates[1]]
    assert intermediates[1] < intermediates[0]


def test_arguments_of_the_trainer_may_be_mutable() -> None:
    made: Any = Classification(num_classes=2, max_epochs=nni.choice("epochs", [1, 2]), **QUIET)

    assert made.trainer.max_epochs == 1
    assert made.freeze({"epochs": 2}).get().trainer.max_epochs == 2


def test_names_of_the_framework_are_at_hand() -> None:
    shortcut: Any = nni.nas.evaluator

    assert shortcut.Classification is pl.Classification is Classification


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class ToTensor:
    def __call__(self, value: Any) -> Any:
        return np.asarray(value, dtype="float32")


class Normalize:
    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.mean, self.std = mean, std

    def __call__(self, value: Any) -> Any:
        return (value - self.mean[0]) / self.std[0]


class Digits(Dataset[tuple[Any, int]]):
    """Digits of scikit-learn, with the arguments that MNIST of torchvision has."""

    def __init__(self, root: str, *, train: bool, download: bool, transform: Any = None) -> None:
        from sklearn.datasets import load_digits

        del root, download
        images, targets = load_digits(return_X_y=True)
        part = slice(0, 64) if train else slice(64, 128)
        self.images, self.targets = images[part], targets[part]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(self.images[index]), int(self.targets[index])


def create_digits(root: str, transform: Any) -> Digits:
    del root
    return Digits(root="data/digits", train=False, download=True, transform=transform)


@pytest.mark.claim("nas", 15)
def test_the_documented_evaluator_is_a_fixed_point_of_dump_and_load() -> None:
    """The example of the serialization page, on digits: MNIST and torchvision are not at hand."""
    transform = nni.trace(Compose)(
        [nni.trace(ToTensor)(), nni.trace(Normalize)((0.1307,), (0.3081,))]
    )
    train_dataset = nni.trace(Digits)(
        root="data/digits", train=True, download=True, transform=transform
    )
    test_dataset = nni.trace(create_digits)("data/digits", transform=transform)
    evaluator = pl.Classification(
        train_dataloaders=pl.DataLoader(train_dataset, batch_size=32),
        val_dataloaders=pl.DataLoader(test_dataset, batch_size=32),
        num_classes=10,
        max_epochs=1,
        **QUIET,
    )

    text = nni.dump(evaluator)
    loaded = nni.load(text)

    assert nni.dump(loaded) == text
    assert "__nni_obj__" not in text
    _, finals = reports_of(lambda: loaded.evaluate(nn.Linear(64, 10)))
    assert 0.0 <= finals[0] <= 1.0
