"""Configuration of counts of FLOPs and parameters."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.flops import count_flops_params


@pytest.mark.parametrize(
    ("config", "flops"),
    [
        (FlopsParamsCounterConfig(), 4 * 3 + 3 + 4 * 3 + 3),
        (FlopsParamsCounterConfig(count_bias=False), 4 * 3 + 4 * 3 + 3),
        (FlopsParamsCounterConfig(count_normalization=False), 4 * 3 + 3 + 3),
        (FlopsParamsCounterConfig(count_activation=False), 4 * 3 + 3 + 4 * 3),
    ],
)
def test_each_part_is_counted_unless_the_configuration_leaves_it_out(
    config: FlopsParamsCounterConfig, flops: int
) -> None:
    network = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU())

    assert count_flops_params(network, torch.zeros(2, 4), config).flops == flops
