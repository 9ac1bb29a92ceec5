"""Models in containers; a replica is built here as `DataParallel` builds one on each GPU."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from nni.compression import TorchEvaluator
from nni.compression.base import ModuleWrapper
from nni.compression.base.parallel import is_distributed, mean_over_processes, plain_model
from nni.compression.pruning import L1NormPruner, TaylorFOWeightPruner

ROOT = Path(__file__).parents[6]
HALF = [{"op_names": ["0"], "sparse_ratio": 0.5}]
DATA = torch.linspace(-1, 1, 6).reshape(2, 3)


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


@pytest.fixture
def process_group(tmp_path: Path) -> Iterator[None]:
    """Group of this process alone."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    yield
    distributed.destroy_process_group()


def replica_of(model: nn.Module) -> nn.Module:
    """Return a copy in which parameters are plain tensors, as on another device."""
    replicas: dict[nn.Module, Any] = {
        module: module._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        for module in model.modules()
    }
    for module, replica in replicas.items():
        for name, child in module._modules.items():
            replica._modules[name] = None if child is None else replicas[child]
        for name, parameter in module._parameters.items():
            if parameter is None:
                replica._parameters[name] = None
            else:
                setattr(replica, name, parameter.clone())
        for name, buffer in module._buffers.items():
            replica._buffers[name] = None if buffer is None else buffer.clone()
    found: nn.Module = replicas[model]
    return found


def test_a_replica_of_a_masked_model_sees_the_masks() -> None:
    model = net()
    L1NormPruner(model, HALF).compress()

    replica = replica_of(model)
    output = replica(DATA)
    output.square().sum().backward()
    gradients = [one.grad for one in model.parameters()]
    model.zero_grad()
    model(DATA).square().sum().backward()

    assert torch.equal(output, model(DATA))
    for gradient, parameter in zip(gradients, model.parameters(), strict=True):
        assert gradient is not None
        assert torch.equal(gradient, parameter.grad)  # type: ignore[arg-type]  # it has one


def test_masks_that_change_between_passes_reach_the_next_replica() -> None:
    model = net()
    pruner = L1NormPruner(model, HALF)
    replica_of(model)(DATA)

    pruner.compress()

    assert torch.equal(replica_of(model)(DATA), model(DATA))


def test_the_model_in_a_container_is_pruned_by_its_own_names() -> None:
    model = net()
    container = nn.DataParallel(model)

    pruned, _ = L1NormPruner(container, HALF).compress()

    assert pruned is model
    assert isinstance(model[0], ModuleWrapper)
    assert torch.equal(container(DATA), model(DATA))


@pytest.mark.usefixtures("process_group")
def test_a_distributed_model_is_pruned_in_its_container() -> None:
    model = net()
    container = DistributedDataParallel(model)

    pruner = L1NormPruner(container, HALF)
    pruner.compress()
    outer = DistributedDataParallel(model)  # a masked model in a new container
    outer(DATA).sum().backward()

    assert pruner.is_distributed
    assert is_distributed(container)
    assert plain_model(container) is model
    weight = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert weight.grad is not None
    assert weight.grad.any(1).sum() <= 2
    assert torch.equal(container(DATA), model(DATA))
    pruner.unwrap_model()
    assert isinstance(model[0], nn.Linear)


@pytest.mark.usefixtures("process_group")
def test_the_mean_over_one_process_is_the_value() -> None:
    value = torch.tensor([1.0, 2.0])

    assert mean_over_processes(value).tolist() == [1.0, 2.0]
    assert value.dtype == torch.float32


class Container(DistributedDataParallel):
    """Container without the communication of gradients, which no test here needs."""

    def __init__(self, module: nn.Module) -> None:
        nn.Module.__init__(self)
        self.module = module


def masked_rows(rank: int, store: str) -> list[float]:
    """Prune a model in one of two processes; return which rows of its weight stay."""
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    model[0].weight.data = torch.ones(2, 2)
    factors = torch.tensor([3.0, 0.0] if rank == 0 else [0.0, 1.0])

    def train(one: nn.Module, optimizer: Any, step: Any, *_: Any) -> None:
        optimizer.zero_grad()
        step(None, one).backward()

    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluator = TorchEvaluator(train, sgd, lambda _, one: (one(torch.ones(1, 2)) * factors).sum())
    try:
        _, masks = TaylorFOWeightPruner(Container(model), HALF, evaluator, 1).compress()
    finally:
        distributed.destroy_process_group()
    found: list[float] = masks["0"]["weight"][:, 0].tolist()
    return found


@pytest.mark.timeout(180)
def test_processes_with_data_of_their_own_mask_the_same(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    call = f"from {__name__} import masked_rows; print(masked_rows(1, {store!r}))"
    command = [sys.executable, "-c", call]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as other:
        rows = masked_rows(0, store)
        output = other.communicate()[0].decode().strip()

    # Process 1 alone would mask the first row: its data have no gradient there.
    assert rows == [1, 0]
    assert output == "[1.0, 0.0]"
