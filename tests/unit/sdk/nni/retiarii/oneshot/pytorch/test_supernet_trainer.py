"""Base of one-shot trainers."""

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from nni.retiarii.oneshot.pytorch.supernet_trainer import (
    LossModule,
    SearchedNetwork,
    _placement,
    halves,
)
from tests.support.oneshot_trainers import TwoBranches, metrics

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_halves_of_a_data_set_have_each_example_once() -> None:
    data = TensorDataset(torch.arange(10))

    first, second = halves(data, 2, 0)
    found = [int(one) for loader in (first, second) for (batch,) in loader for one in batch]

    assert (len(first), len(second)) == (3, 3)
    assert sorted(found) == list(range(10))


def test_plain_network_is_searched_as_the_part_of_a_space() -> None:
    space = SearchedNetwork(TwoBranches())

    assert list(space.simplify()) == ["branch"]
    assert space(torch.zeros(1, 3)).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("device", "placement"),
    [
        (None, {"accelerator": "auto", "devices": 1}),
        (torch.device("cpu"), {"accelerator": "cpu", "devices": 1}),
        (torch.device("cuda", 1), {"accelerator": "gpu", "devices": [1]}),
    ],
)
def test_device_is_that_of_the_trainer(device: torch.device | None, placement: object) -> None:
    assert _placement(device) == placement


def test_optimizer_is_that_of_the_user() -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)

    module = LossModule(nn.functional.mse_loss, metrics, optimizer)

    assert module.configure_optimizers() is optimizer
