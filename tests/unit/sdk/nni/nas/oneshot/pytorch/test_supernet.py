"""Conversion of a model space by hooks."""

from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.mutable import ExpressionConstraint, ensure_frozen
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear, MutableReLU
from nni.nas.oneshot.pytorch.path_modules import PathLayerChoice
from nni.nas.oneshot.pytorch.supernet import (
    converted,
    is_supernet,
    labels_without_effect,
    mutate,
    refuse_remaining,
    replaced,
    unchanged,
)
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import Branches, as_path


def names_of(space: nn.Module, *hooks: Any) -> list[str]:
    """Return the names for which a last hook is called after the given ones."""
    seen: list[str] = []

    def record(module: nn.Module, name: str, memo: dict[str, Any], arguments: Any) -> None:
        seen.append(name)

    mutate(space, [*hooks, record], {}, {})
    return seen


def test_modules_are_visited_parents_first_without_the_root() -> None:
    assert names_of(Branches()) == ["branch", "branch.zero", "branch.line"]


def test_parts_are_visited_in_the_order_in_which_they_were_added() -> None:
    names = names_of(nn.Sequential(nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())))

    assert names == ["0", "1", "0.0", "1.0"]


@pytest.mark.parametrize("ends", [lambda one: True, lambda one: (one, True), lambda one: one])
def test_module_or_true_ends_the_hooks_for_a_place(ends: Any) -> None:
    def hook(module: nn.Module, *_: Any) -> Any:
        return ends(module) if isinstance(module, LayerChoice) else None

    assert names_of(Branches(), hook) == ["branch.zero", "branch.line"]


@pytest.mark.parametrize("goes_on", [lambda one: False, lambda one: (one, False)])
def test_false_lets_later_hooks_run(goes_on: Any) -> None:
    def hook(module: nn.Module, *_: Any) -> Any:
        return goes_on(module)

    assert "branch" in names_of(Branches(), hook)


def test_other_result_of_a_hook_is_refused() -> None:
    with pytest.raises(TypeError, match="a mutation hook must return"):
        replaced(nn.ReLU(), "relu", [lambda *_: "done"], {}, {})  # type: ignore[list-item]  # what is tested


def test_shared_module_is_replaced_by_one_module() -> None:
    class Twice(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.first = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")
            self.second = self.first

    space = Twice()
    as_path(space)

    assert isinstance(space.first, PathLayerChoice)
    assert space.first is space.second


def test_conversion_keeps_weights_and_names_of_the_state() -> None:
    space = Branches()
    before = {name: value.clone() for name, value in space.state_dict().items()}

    as_path(space)

    after = space.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_converted_module_shares_parts_but_not_their_dict() -> None:
    choice = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")

    made = converted(PathLayerChoice, choice)
    made[0] = nn.Sigmoid()

    assert made[1] is choice[1]
    assert isinstance(choice[0], nn.ReLU)


def test_remaining_mutable_is_refused_with_its_name() -> None:
    class Activated(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.relu = MutableReLU(nni.choice("inplace", [False, True]))

    with pytest.raises(TypeError, match="MutableReLU at 'relu' is not supported by Toy"):
        mutate(Activated(), [refuse_remaining], {}, {"strategy": "Toy"})


def test_only_converted_spaces_are_supernets() -> None:
    space = Branches()

    assert not is_supernet(space)
    as_path(space)
    assert is_supernet(space)


def test_change_of_a_shared_input_in_place_is_refused() -> None:
    inputs = {"first": [torch.ones(1)]}

    with (
        pytest.raises(RuntimeError, match=r"'act' changes its input in place.*inplace=False"),
        unchanged(inputs, "act"),
    ):
        inputs["first"][0].add_(1)
    with torch.inference_mode(), unchanged(torch.ones(1), "act"):
        assert torch.is_inference_mode_enabled()


def test_labels_that_no_module_depends_on_are_found() -> None:
    class Used(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            size = self.add_mutable(nni.choice("size", [1, 2]))
            self.add_mutable(ExpressionConstraint(size < 3, label="limit"))
            width = self.add_mutable(nni.choice("width", [1, 2]))
            self.pool = nn.AdaptiveAvgPool1d(ensure_frozen(size))
            self.layer = MutableLinear(1, width)

    space = Used()
    as_path(space)

    assert labels_without_effect(space) == ["size"]
