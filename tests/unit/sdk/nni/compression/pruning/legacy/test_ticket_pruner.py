from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

from nni.compression.base import ConfigListError
from nni.compression.pruning.legacy.ticket_pruner import TicketPruner

pytestmark = pytest.mark.filterwarnings("ignore:.*of an older NNI:DeprecationWarning")


def net() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(100, 100))


CONFIG: list[dict[str, object]] = [{"op_types": ["Linear"], "sparsity": 0.8, "prune_iterations": 5}]


def train(model: nn.Module, optimizer: Any) -> None:
    optimizer.zero_grad()
    model(torch.ones(2, 100)).square().sum().backward()
    optimizer.step()


@pytest.mark.claim("compression", 36)
def test_each_round_prunes_the_same_part_of_what_is_left() -> None:
    model = net()
    pruner = TicketPruner(model, CONFIG)
    assert pruner.compress() is model
    rounds = list(pruner.get_prune_iterations())

    found = []
    for _ in rounds:
        pruner.prune_iteration_start()
        found.append(1 - float(pruner.get_masks()["0"]["weight"].mean()))

    assert len(rounds) == 6
    assert found == pytest.approx([0, 0.2752, 0.4747, 0.6193, 0.7241, 0.8], abs=2e-4)
    assert pruner.get_masks()["0"]["bias"].all()
    with pytest.raises(RuntimeError, match="prune_iteration_start was called 6 times"):
        pruner.prune_iteration_start()


@pytest.mark.claim("compression", 37)
def test_weights_start_again_and_masks_are_nested() -> None:
    model = net()
    initial = model[0].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = StepLR(optimizer, 1, gamma=0.5)
    pruner = TicketPruner(model, CONFIG, optimizer, scheduler)
    pruner.compress()
    earlier = pruner.get_masks()["0"]["weight"]

    for number in pruner.get_prune_iterations():
        pruner.prune_iteration_start()
        mask = pruner.get_masks()["0"]["weight"]
        assert optimizer.param_groups[0]["lr"] == 0.1
        assert number == 0 or not optimizer.state_dict()["state"]
        assert torch.equal(model[0].module.weight, initial)
        assert not (mask.bool() & ~earlier.bool()).any()
        earlier = mask
        train(model, optimizer)
        scheduler.step()
        assert not torch.equal(model[0].module.weight, initial)
        assert not model[0].module.weight[mask == 0].any()


def test_weights_may_go_on() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    pruner = TicketPruner(model, CONFIG, optimizer, reset_weights=False)
    pruner.compress()

    pruner.prune_iteration_start()
    train(model, optimizer)
    trained = model[0].module.weight.detach().clone()
    pruner.prune_iteration_start()

    assert torch.equal(model[0].module.weight, trained)


@pytest.mark.parametrize(
    "entries",
    [
        [{"op_types": ["Linear"], "sparsity": 0.8}],
        [{**CONFIG[0], "prune_iterations": 0}],
        [CONFIG[0], {**CONFIG[0], "prune_iterations": 4}],
    ],
)
def test_entries_need_one_number_of_rounds(entries: Any) -> None:
    with pytest.raises(ConfigListError, match="needs one prune_iterations >= 1 for all entries"):
        TicketPruner(net(), entries)


def test_ratios_are_open_and_exceptions_need_no_rounds() -> None:
    with pytest.raises(ConfigListError, match=r"in \(0, 1\)"):
        TicketPruner(net(), [{**CONFIG[0], "sparsity": 1.0}])
    excluded = TicketPruner(net(), [CONFIG[0], {"op_names": ["0"], "exclude": True}])
    assert excluded.get_masks() == {}
