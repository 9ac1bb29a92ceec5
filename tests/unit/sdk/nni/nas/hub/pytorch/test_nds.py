"""Networks of cells fit together for every width, depth and number of loose ends."""

import random
from typing import Any

import pytest
import torch

from nni.nas.hub.pytorch import NDS
from nni.nas.hub.pytorch.nds_operators import DropPath

OPERATORS = ["skip_connect", "max_pool_3x3", "conv_1x1"]


def images(size: int = 16) -> torch.Tensor:
    return torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("merge", ["all", "loose_end"])
@pytest.mark.parametrize("cells", [3, 4, 5, 6, 7])
def test_channels_fit_at_every_depth(merge: Any, cells: int) -> None:
    space = NDS(OPERATORS, merge, 3, 4, cells)
    state = random.Random(cells)
    for _ in range(3):
        assert space.random(random_state=state)(images()).shape == (2, 10)


def test_width_and_depth_are_dimensions_where_several_are_given() -> None:
    assert list(NDS(OPERATORS, width=(4, 8), num_cells=(3, 4)).simplify())[:2] == [
        "nds/width",
        "nds/depth",
    ]
    assert "nds/width" not in NDS(OPERATORS, width=4, num_cells=3).simplify()


def test_chosen_depth_and_width_are_built() -> None:
    space = NDS(OPERATORS, "loose_end", 2, (4, 8), (3, 5))
    memo: dict[str, Any] = {"nds/width": 8, "nds/depth": 5}

    frozen = space.random(memo, random.Random(0))

    assert [len(stage) for stage in frozen.stages] == [1, 2, 2]
    assert frozen.stem[0][0].out_channels == 24


def test_large_images_are_reduced_by_the_stem() -> None:
    space = NDS(OPERATORS, num_nodes_per_cell=1, width=4, num_cells=3, dataset="imagenet")

    frozen = space.default()

    assert frozen.stem[1](frozen.stem[0](images(64))).shape == (2, 4, 8, 8)
    assert frozen(images(64)).shape == (2, 1000)


def test_auxiliary_head_computes_in_training_only() -> None:
    space = NDS(OPERATORS, num_nodes_per_cell=1, width=4, num_cells=3, auxiliary_loss=True)
    frozen = space.default()

    main, auxiliary = frozen.train()(images())

    assert main.shape == auxiliary.shape == (2, 10)
    assert frozen.eval()(images()).shape == (2, 10)


def test_outputs_of_operators_are_dropped_but_not_those_of_identities() -> None:
    def drops(names: list[str], probability: float) -> int:
        space = NDS(names, num_nodes_per_cell=1, width=4, num_cells=3, drop_path_prob=probability)
        return sum(isinstance(one, DropPath) for one in space.default().modules())

    assert drops(["conv_1x1"], 0.2) == 3 * 2
    assert drops(["conv_1x1"], 0.0) == 0
    # Of reduction cells, the skip connections on inputs have parameters.
    assert drops(["skip_connect"], 0.2) == 2 * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"op_candidates": ["conv_9x9"]}, r"op_candidates must be of .* got \['conv_9x9'\]"),
        ({"num_cells": 2}, "num_cells must be >= 3"),
        ({"num_cells": (2, 4)}, "num_cells must be >= 3"),
        ({"dataset": "mnist"}, "dataset must be one of cifar, imagenet, got 'mnist'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NDS(**{"op_candidates": OPERATORS, **arguments})
