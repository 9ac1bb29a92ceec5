"""Logits of a supernet by label, and the probabilities that follow from them."""

import pytest
import torch

from nni.mutable import Categorical, CategoricalMultiple, Numerical
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights, GumbelWeights, chosen

KERNEL = Categorical([3, 5, 7], label="net.kernel")
SKIP = CategoricalMultiple([0, 1, 2], n_chosen=2, label="skip")


def weights_of(*logits: float) -> ArchitectureWeights:
    weights = ArchitectureWeights()
    weights.add_leaf(KERNEL)
    with torch.no_grad():
        weights.logits(KERNEL.label).copy_(torch.tensor(logits))
    return weights


def test_initial_logits_are_small_and_repeat_with_the_seed() -> None:
    torch.manual_seed(0)
    weights = ArchitectureWeights()
    weights.add_leaf(KERNEL)
    torch.manual_seed(0)

    # Four deviations of 1e-3, each of three draws below with probability 1 - 6e-5.
    assert weights.logits(KERNEL.label).abs().max() < 4e-3
    assert torch.equal(weights.logits(KERNEL.label), torch.randn(3) * 1e-3)


def test_label_is_added_once() -> None:
    weights = weights_of(1, 2, 3)

    weights.add_leaf(KERNEL)

    assert weights.logits(KERNEL.label).tolist() == [1, 2, 3]


def test_numbers_have_no_logits() -> None:
    with pytest.raises(TypeError, match="choice among values"):
        ArchitectureWeights().add_leaf(Numerical(0, 1, label="rate"))


def test_best_takes_the_most_probable_values_in_order() -> None:
    weights = weights_of(0, 2, 1)
    weights.add_leaf(SKIP)
    with torch.no_grad():
        weights.logits("skip").copy_(torch.tensor([1.0, 0.0, 2.0]))

    assert weights.best() == {"net.kernel": 5, "skip": [0, 2]}


def test_any_number_of_inputs_is_exported_as_one() -> None:
    leaf = CategoricalMultiple([0, 1], n_chosen=None, label="any")

    assert chosen(leaf, torch.tensor([0.0, 1.0])) == [1]


def test_one_draw_is_shared_inside_and_new_outside() -> None:
    torch.manual_seed(0)
    weights = GumbelWeights()
    weights.add_leaf(KERNEL)

    with weights.draw(constant=False):
        first, second = weights.weights(KERNEL.label), weights.weights(KERNEL.label)
    third = weights.weights(KERNEL.label)

    assert first is second
    assert not torch.equal(first, third)


def test_constant_draw_has_no_gradient() -> None:
    weights = weights_of(0, 1, 2)

    with weights.draw(constant=True):
        assert not weights.weights(KERNEL.label).requires_grad
    assert weights.weights(KERNEL.label).requires_grad


def test_state_dict_restores_logits() -> None:
    restored = weights_of(0, 0, 0)

    restored.load_state_dict(weights_of(1, 2, 3).state_dict())

    assert restored.logits(KERNEL.label).tolist() == [1, 2, 3]


def test_low_temperature_gives_nearly_one_choice() -> None:
    torch.manual_seed(0)
    weights = GumbelWeights()
    weights.add_leaf(KERNEL)

    weights.temperature = 1e-3
    nearly = weights.weights(KERNEL.label)
    weights.temperature = 0.0
    exactly = weights.weights(KERNEL.label)

    assert nearly.max() > 0.99
    assert sorted(exactly.tolist()) == [0, 0, 1]


def test_drawn_samples_follow_the_probabilities() -> None:
    torch.manual_seed(0)
    weights = weights_of(*torch.tensor([0.1, 0.2, 0.7]).log().tolist())

    share = sum(weights.drawn_sample()["net.kernel"] == 7 for _ in range(300)) / 300

    # Standard deviation sqrt(0.7 * 0.3 / 300) = 0.026; four of them.
    assert share == pytest.approx(0.7, abs=0.11)
