"""Pruning in one call: exact on every construct, smaller, and the same kind of model."""

import copy
import pickle

import pytest
import torch
from torch import nn

from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.pruning import choose_units, l1_scores, masked, prune
from tests.unit.sdk.nni.compression.models import NAMES, Auxiliary, build, randomised


@pytest.mark.parametrize("name", NAMES)
def test_the_smaller_model_computes_the_masked_function(name: str) -> None:
    model, inputs = build(name)
    before = model(inputs)

    smaller, report = prune(model, inputs, 0.5)

    assert report.error <= 1e-4
    assert report.parameters_after < 0.85 * report.parameters_before
    assert smaller(inputs).shape == before.shape
    assert torch.equal(model(inputs), before)


@pytest.mark.parametrize("name", NAMES)
def test_the_masked_reference_is_not_the_dense_model(name: str) -> None:
    model, inputs = build(name)

    smaller, _ = prune(model, inputs, 0.5)

    assert not torch.allclose(smaller(inputs), model(inputs), rtol=1e-5, atol=1e-5)


def test_attention_over_patches_loses_heads_with_their_values() -> None:
    model, inputs = build("outlook")

    smaller, _ = prune(model, inputs, 0.5)

    sizes = {name: one.out_features for name, one in smaller.named_children() if name != "norm"}
    assert sizes == {"value": 4, "weights": 32, "project": 8, "head": 5}


def test_reported_error_is_measured_against_weights_times_masks() -> None:
    model, inputs = build("residual")
    dependencies = find_dependencies(model, inputs)
    removed = choose_units(dependencies, l1_scores(model, dependencies), 0.5)
    twin = copy.deepcopy(model)
    for name, parameter in twin.named_parameters():
        for block in dependencies.blocks[name]:
            keep = ~removed[dependencies.roots[block.ids]]
            parameter.data *= torch.from_numpy(keep).float()

    smaller, _ = prune(model, inputs, 0.5)

    assert torch.allclose(smaller(inputs), twin(inputs), rtol=1e-4, atol=1e-5)
    with masked(model, dependencies, removed):
        assert torch.equal(model(inputs), twin(inputs))


def test_units_with_the_smallest_norm_go() -> None:
    model = nn.Sequential(nn.Linear(1, 4, bias=False), nn.Linear(4, 1, bias=False))
    model[0].weight.data = torch.tensor([[3.0], [1.0], [2.0], [0.5]])
    model[1].weight.data = torch.tensor([[0.1, 0.1, 0.1, 9.0]])

    smaller, _ = prune(model, torch.ones(1, 1), 0.5)

    assert smaller[0].weight.ravel().tolist() == [3.0, 0.5]


def test_sizes_that_modules_store_follow() -> None:
    model, inputs = build("squeeze-excite")

    smaller, _ = prune(model, inputs, 0.5)

    depthwise, norm = smaller.depthwise[0], smaller.depthwise[1]
    assert (depthwise.in_channels, depthwise.out_channels, depthwise.groups) == (4, 4, 4)
    assert norm.num_features == 4


def test_widths_are_rounded_up_to_a_multiple() -> None:
    model = nn.Sequential(nn.Linear(3, 20), nn.ReLU(), nn.Linear(20, 2))

    smaller, _ = prune(model, torch.ones(1, 3), 0.5, round_to=8)

    assert smaller[0].out_features == 16


def test_groups_of_a_convolution_stay_equal_and_rounded() -> None:
    model, inputs = build("grouped")

    smaller, _ = prune(model, inputs, 0.5, round_to=8)

    assert smaller.grouped[0].weight.shape == (16, 2, 3, 3)


def test_flags_and_statistics_stay() -> None:
    model, inputs = build("residual")
    model.train()
    model.first.eval()
    before = copy.deepcopy(model.state_dict())

    smaller, _ = prune(model, inputs, 0.0)

    assert smaller.training
    assert not smaller.first[0][1].training
    assert all(torch.equal(value, before[name]) for name, value in smaller.state_dict().items())


def test_a_norm_may_change_on_request_and_is_named() -> None:
    model, inputs = build("normalised")

    strict, exact = prune(model, inputs, 0.5)
    loose, changed = prune(model, inputs, 0.5, allow_norm_change=True)

    assert (strict.norm.normalized_shape, exact.changed_norms) == ((8,), ())
    assert (loose.norm.normalized_shape, changed.changed_norms) == ((4,), ("norm",))
    assert changed.error > 1e-4


def test_the_result_is_a_plain_module_that_pickles_and_trains() -> None:
    model, inputs = build("residual")

    smaller, _ = prune(model, inputs, 0.5)
    copied = pickle.loads(pickle.dumps(smaller))
    smaller.train()(inputs).sum().backward()

    assert type(smaller) is type(model)
    assert copied.stem[0].weight.shape == (4, 3, 3, 3)
    assert smaller.stem[0].weight.grad.shape == (4, 3, 3, 3)


def test_planning_beyond_its_time_limit_leaves_the_model_and_says_so() -> None:
    model, inputs = build("grouped")

    smaller, report = prune(model, inputs, 0.5, time_limit_s=1e-9)

    assert report.parameters_after == report.parameters_before
    assert torch.equal(smaller(inputs), model(inputs))
    assert report.fixed["head.weight"] == "planning exceeded time_limit_s=1e-09 (t in head)"


@pytest.mark.parametrize(
    ("sparsity", "round_to", "name"),
    [(1.0, 1, "sparsity"), (-0.1, 1, "sparsity"), (0.5, 0, "round_to")],
)
def test_arguments_out_of_range_are_refused(sparsity: float, round_to: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be at least"):
        prune(nn.Linear(1, 1), torch.zeros(1, 1), sparsity, round_to=round_to)


def test_heads_that_only_training_uses_shrink_with_the_trunk() -> None:
    model = randomised(Auxiliary())
    images = torch.randn(2, 3, 4, 4)

    smaller, report = prune(model, images, 0.5)

    assert report.error <= 1e-4
    assert smaller.auxiliary[0][0].weight.shape == (3, 4, 1, 1)
    first, second = smaller.train()(images)
    assert first.shape == second.shape == (2, 5)
