"""FBNet of NAS 1.0."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nni.retiarii.nn.pytorch as legacy
from nni.retiarii import fixed_arch
from nni.retiarii.evaluator.pytorch import DataLoader
from nni.retiarii.oneshot.pytorch import FBNetTrainer, LookUpTable, NASConfig
from nni.retiarii.oneshot.pytorch.fbnet import (
    ExponentialTemperature,
    LogarithmicPenalty,
    TableProfiler,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    # Lightning 2.6 calls functions of torch 2.13 that are deprecated.
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
PRIMITIVES: dict[str, Callable[[int, int, int, int], nn.Module]] = {
    "k1": lambda inputs, outputs, _, stride: nn.Conv2d(inputs, outputs, 1, stride),
    "k3": lambda inputs, outputs, _, stride: nn.Conv2d(inputs, outputs, 3, stride, 1),
}
SPACE = {"input_shape": [(2, 4, 4), (3, 4, 4)], "channel_size": [3, 3], "strides": [1, 2]}


class Net(nn.Module):
    """Network of two searched layers."""

    def __init__(self, table: LookUpTable) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                legacy.LayerChoice({name: build() for name, build in row.items()}, label=f"{at}")
                for at, row in enumerate(table.lut_ops)
            )
        )

    def forward(self, inputs: Tensor) -> Any:
        return self.layers(inputs).mean((2, 3))


def config(**fields: Any) -> NASConfig:
    return NASConfig(search_space=SPACE, **fields)


def test_table_has_the_operations_of_each_operator() -> None:
    table = LookUpTable(config(), PRIMITIVES)

    # Outputs times (kernel times input channels plus bias).
    assert table.lut_perf == [
        {"k1": 48 * 3.0, "k3": 48 * 19.0},
        {"k1": 12 * 4.0, "k3": 12 * 28.0},
    ]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"perf_metric": "time"}, "perf_metric must be one of"),
        ({"mode": "sum"}, "mode must be one of"),
        ({"lut_load": True}, "model_dir must be given with lut_load=True"),
        ({"search_space": {"input_shape": []}}, "search_space must have 'channel_size'"),
    ],
)
def test_wrong_configuration_is_refused(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        LookUpTable(NASConfig(**{"search_space": SPACE, **fields}), PRIMITIVES)


def test_table_of_latencies_is_measured() -> None:
    table = LookUpTable(config(perf_metric="latency"), PRIMITIVES)

    assert all(cost > 0 for row in table.lut_perf for cost in row.values())


def test_table_is_read_from_its_folder(tmp_path: Path) -> None:
    made = LookUpTable(config(model_dir=tmp_path), PRIMITIVES)

    assert LookUpTable(config(model_dir=tmp_path, lut_load=True), PRIMITIVES).lut_perf == (
        made.lut_perf
    )
    with pytest.raises(ValueError, match="must have the layers and operators"):
        LookUpTable(config(model_dir=tmp_path, lut_load=True), {"k1": PRIMITIVES["k1"]})


def test_cost_of_a_network_is_the_sum_of_its_layers() -> None:
    table = LookUpTable(config(), PRIMITIVES)

    profiler = TableProfiler(table.expression(Net(table)))

    assert profiler.profile({"0": "k1", "1": "k3"}) == 144 + 336
    with pytest.raises(ValueError, match="model must have 2 choices among layers"):
        table.expression(nn.Identity())


@pytest.mark.parametrize("mode", ["mul", "add"])
def test_penalty_is_a_power_of_the_logarithm_of_the_expected_cost(mode: Any) -> None:
    table = LookUpTable(config(mode=mode, alpha=0.5, beta=2.0), PRIMITIVES)
    penalty = LogarithmicPenalty(TableProfiler(table.expression(Net(table))), table.config)
    even = torch.tensor([0.5, 0.5])

    total, details = penalty(torch.tensor(3.0), {"0": even, "1": even})

    expected = 0.5 * math.log1p((144 + 912 + 48 + 336) / 2) ** 2
    assert float(details["penalty"]) == 720
    # Single precision: seven digits.
    assert float(total) == pytest.approx(3 * expected if mode == "mul" else 3 + expected, 1e-5)


def test_temperature_falls_by_a_factor() -> None:
    assert ExponentialTemperature(4.0, 0.5).at(3, 10) == 0.5


def test_cheap_operators_are_chosen_where_the_cost_is_all(tmp_path: Path) -> None:
    torch.manual_seed(0)
    table = LookUpTable(config(mode="add", alpha=10.0, nas_lr=0.1, start_epoch=0), PRIMITIVES)
    model = Net(table)
    data = torch.utils.data.TensorDataset(torch.randn(16, 2, 4, 4), torch.zeros(16).long())
    loader: Any = DataLoader(data, 4)

    FBNetTrainer(
        model,
        torch.optim.SGD(model.parameters(), 0.01),
        nn.functional.cross_entropy,
        "cpu",
        None,
        table,
        loader,
        loader,
        n_epochs=5,
        arch_path=tmp_path / "arch.json",
    ).train()

    with fixed_arch(tmp_path / "arch.json"):
        kernels = [layer.kernel_size for layer in Net(table).layers]
    assert kernels == [(1, 1), (1, 1)]
