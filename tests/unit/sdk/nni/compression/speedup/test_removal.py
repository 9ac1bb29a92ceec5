"""Physical removal: indices, tensors and sizes that modules store."""

import numpy as np
import pytest
import torch
from torch import nn

from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.removal import EmptyLayerError, Undo, keep_indices, remove, shrunk
from nni.compression.speedup.slots import Block


def test_rows_may_keep_different_indices_of_equal_number() -> None:
    block = Block(1, np.arange(6).reshape(2, 3))
    kept = np.array([[True, False, True], [False, True, True]])

    assert keep_indices(block, kept).tolist() == [[0, 2], [1, 2]]
    assert shrunk(torch.arange(6).reshape(2, 3), [block], {1: ~kept}).tolist() == [[0, 2], [4, 5]]


def test_rows_of_different_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="would keep 1 to 2"):
        keep_indices(Block(1, np.arange(4).reshape(2, 2)), np.array([[True, True], [True, False]]))


def test_a_model_can_be_restored() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    dependencies = find_dependencies(model, torch.zeros(1, 2))
    removed = np.zeros(len(dependencies.roots), dtype=bool)
    removed[dependencies.free()[:3]] = True
    undo = Undo()

    remove(model, dependencies, removed, undo)
    width = model[0].out_features
    undo.restore()

    assert (width, model[0].out_features, model[1].in_features) == (1, 4, 4)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_layer_is_never_emptied() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    dependencies = find_dependencies(model, torch.zeros(1, 2))
    removed = np.zeros(len(dependencies.roots), dtype=bool)
    removed[dependencies.free()] = True

    with pytest.raises(EmptyLayerError, match=r"0\.weight: all 4 indices of axis 0"):
        remove(model, dependencies, removed, Undo())


def test_parameters_stay_the_same_objects() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    weight = model[0].weight
    dependencies = find_dependencies(model, torch.zeros(1, 2))
    removed = np.zeros(len(dependencies.roots), dtype=bool)
    removed[dependencies.free()[0]] = True

    remove(model, dependencies, removed, Undo())

    assert model[0].weight is weight
    assert weight.shape == (3, 2)
    assert weight.requires_grad
