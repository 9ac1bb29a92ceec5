"""Mutable modules, and how modules are frozen."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import Categorical, Sample, SampleValidationError
from nni.nas.nn.pytorch import LayerChoice, MutableLinear, MutableModule, recursive_freeze
from nni.nas.space import model_context
from tests.unit.sdk.nni.nas.space_models import SharedSpace, TinySpace


class Fixed(nn.Module):
    def __init__(self, factor: int) -> None:
        super().__init__()
        self.factor = factor


class Scale(MutableModule):
    def __init__(self, values: list[int]) -> None:
        super().__init__()
        self.factor = self.add_mutable(Categorical(values, label="factor"))

    @classmethod
    def create_fixed_module(cls, sample: Sample, values: list[int]) -> nn.Module:
        del values
        return Fixed(sample["factor"])

    def freeze(self, sample: Sample) -> nn.Module:
        self.validate(sample)
        return Fixed(self.factor.freeze(sample))


class Unfreezable(MutableModule):
    def __init__(self) -> None:
        super().__init__()
        self.add_mutable(Categorical([1, 2], label="factor"))


def activations(label: str = "act") -> LayerChoice:
    return LayerChoice([nn.ReLU(), nn.Tanh()], label=label)


def test_only_mutables_can_be_added() -> None:
    with pytest.raises(TypeError, match=r"mutable must be a mutable.*got 3"):
        MutableModule().add_mutable(3)


def test_registered_mutables_are_listed() -> None:
    module = Scale([1, 2])

    assert module.mutables == [module.factor]


def test_constructor_builds_the_fixed_module_in_a_context() -> None:
    with model_context({"factor": 2}):
        module = Scale([1, 2])

    assert isinstance(module, Fixed)
    assert module.factor == 2


def test_class_without_a_fixed_module_is_constructed_in_a_context() -> None:
    with model_context({"factor": 2}):
        module = Unfreezable()

    assert not MutableModule.should_invoke_fixed_module()
    assert module.mutables == []


def test_freezing_own_mutables_needs_an_override() -> None:
    with pytest.raises(TypeError, match="Unfreezable registers mutables and must override freeze"):
        Unfreezable().freeze({"factor": 1})


def test_module_without_mutables_is_frozen_to_itself() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    assert recursive_freeze(network, {}) == (network, False)


def test_mutables_are_found_at_any_depth() -> None:
    network = nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU(), nn.ModuleList([activations()])))

    frozen, changed = recursive_freeze(network, {"act": 1})

    assert changed
    assert isinstance(frozen[1][1][0], nn.Tanh)
    assert isinstance(network[1][1][0], LayerChoice)


def test_containers_are_copied_with_the_weights_of_other_children() -> None:
    network: Any = nn.Sequential(nn.Linear(2, 2), activations())
    frozen: Any

    frozen, _ = recursive_freeze(network, {"act": 0})

    assert frozen[0] is not network[0]
    assert torch.equal(frozen[0].weight, network[0].weight)


def test_chosen_candidate_is_used_as_it_is() -> None:
    space = SharedSpace()

    frozen = space.freeze({"first": 1})

    assert frozen.first is space.first[1]


def test_layer_that_occurs_twice_is_one_in_the_copy() -> None:
    linear, choice = nn.Linear(2, 2), activations()
    network = nn.Sequential(nn.Sequential(linear, choice), linear, choice)

    frozen, _ = recursive_freeze(network, {"act": 1})

    assert frozen[0][0] is frozen[1]
    assert frozen[0][1] is frozen[2]


def test_other_references_to_a_choice_follow() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choice = activations()
            self.steps = [self.choice]

    frozen, _ = recursive_freeze(Net(), {"act": 1})

    assert frozen.steps[0] is frozen.choice


def test_error_names_the_way_to_the_choice() -> None:
    space = nn.ModuleDict({"body": nn.Sequential(activations())})

    with pytest.raises(SampleValidationError, match=r"got 7 \(in body\.0 -> act\)"):
        recursive_freeze(space, {"act": 7})


def test_descendants_are_the_nearest_mutable_modules() -> None:
    inner = LayerChoice([activations("inner"), nn.ReLU()], label="outer")
    module = MutableModule()
    module.add_module("body", nn.Sequential(nn.ReLU(), inner))

    assert list(module.named_mutable_descendants()) == [("body.1", inner)]
    assert list(module.simplify()) == ["outer", "inner"]


@pytest.mark.claim("nas", 21)
def test_same_label_with_other_candidates_is_an_error_of_simplify() -> None:
    module = MutableModule()
    module.add_module("one", LayerChoice([nn.ReLU()], label="act"))
    module.add_module("two", activations())

    with pytest.raises(ValueError, match="same label must be equal"):
        module.simplify()


def test_simplify_returns_the_same_leaves_while_nothing_changes() -> None:
    space = TinySpace()

    first, second = space.simplify(), space.simplify()

    assert first is not second
    assert all(first[label] is second[label] for label in first)


@pytest.mark.parametrize("depth", ["child", "grandchild"])
def test_simplify_sees_exchanged_modules(depth: str) -> None:
    module = MutableModule()
    module.body = nn.Sequential(nn.Sequential(activations("old")))
    module.simplify()

    if depth == "child":
        module.body = nn.Sequential(activations("new"))
    else:
        module.body[0][0] = activations("new")

    assert list(module.simplify()) == ["new"]


def test_simplify_sees_mutables_that_are_added_later() -> None:
    module = MutableModule()
    module.simplify()

    module.add_mutable(Categorical([1], label="late"))

    assert list(module.simplify()) == ["late"]


def test_copies_and_pickles_hold_no_cache() -> None:
    space = TinySpace()
    expected = list(space.simplify())

    copies = [copy.deepcopy(space), pickle.loads(pickle.dumps(space))]

    for one in copies:
        assert list(one.simplify()) == expected
        assert one.hidden is not space.hidden


def test_copies_can_be_made_in_a_context() -> None:
    choice = activations()

    with model_context({"act": 1}):
        copied = copy.deepcopy(choice)

    assert isinstance(copied, LayerChoice)


def test_parametrized_layer_inside_a_plain_module_is_rebuilt() -> None:
    width = Categorical([2, 4], label="width")
    network = nn.Sequential(MutableLinear(2, width), MutableLinear(width, 1))
    frozen: Any

    frozen, _ = recursive_freeze(network, {"width": 4})

    assert [tuple(layer.weight.shape) for layer in frozen] == [(4, 2), (1, 4)]


def test_text_is_that_of_a_module() -> None:
    assert repr(activations()).splitlines() == [
        "LayerChoice(",
        "  label='act'",
        "  (0): ReLU()",
        "  (1): Tanh()",
        ")",
    ]
