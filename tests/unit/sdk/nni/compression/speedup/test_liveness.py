"""Units that contribute nothing."""

import numpy as np
import torch
from torch import nn

from nni.compression.speedup.constants import probe_constants
from nni.compression.speedup.groups import Dependencies, find_dependencies
from nni.compression.speedup.liveness import absorptions, dead_units
from nni.compression.speedup.slots import Flags


def analysed(model: nn.Module) -> tuple[Dependencies, Flags, list[str]]:
    inputs = torch.randn(2, 3)
    dependencies = find_dependencies(model, inputs)
    wanted = {sink.node for sink in dependencies.sinks}
    probe = probe_constants(model, inputs, dependencies.graph, wanted)
    dead = dead_units(model, dependencies, probe)
    found = absorptions(model, dependencies, probe, dead)
    return dependencies, dead, [one.module for one in found]


def three_layers() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def dead_places(name: str, dependencies: Dependencies, dead: Flags) -> list[int]:
    block = next(one for one in dependencies.blocks[name] if one.axis == 0)
    return np.flatnonzero(dead[dependencies.roots[block.ids.ravel()]]).tolist()


def test_a_unit_is_dead_if_its_activation_is_zero() -> None:
    model = three_layers()
    model[0].weight.data[1] = 0
    model[0].bias.data[1] = 0

    dependencies, dead, absorbing = analysed(model)

    assert dead_places("0.weight", dependencies, dead) == [1]
    assert absorbing == []


def test_a_unit_is_dead_if_only_dead_units_read_it() -> None:
    model = three_layers()
    model[4].weight.data[:, 2] = 0
    model[2].weight.data[[0, 1, 3], 3] = 0

    dependencies, dead, _ = analysed(model)

    assert dead_places("2.weight", dependencies, dead) == [2]
    assert dead_places("0.weight", dependencies, dead) == [3]


def test_a_constant_unit_is_dead_if_a_bias_absorbs_it() -> None:
    model = three_layers()
    model[0].weight.data[1] = 0

    dependencies, dead, absorbing = analysed(model)

    assert dead_places("0.weight", dependencies, dead) == [1]
    assert absorbing == ["2"]


def test_a_dense_model_has_no_dead_unit() -> None:
    _, dead, absorbing = analysed(three_layers())

    assert not dead.any()
    assert absorbing == []
