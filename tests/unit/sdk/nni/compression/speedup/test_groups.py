"""Groups of small models: what is removed together and what is frozen."""

import itertools

import torch
from torch import nn

from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.groups import find_dependencies
from nni.compression.speedup.recording import capture
from tests.unit.sdk.nni.compression.models import build


def axes_by_first(name: str) -> dict[str, set[tuple[str, int]]]:
    """Return the axes of each group by the name of its first parameter."""
    model, inputs = build(name)
    groups = find_dependencies(model, inputs).groups()
    return {group.axes[0][0]: set(group.axes) for group in groups}


def test_a_filter_goes_with_its_norm_and_the_next_input() -> None:
    groups = axes_by_first("plain")

    assert {("conv1.0.weight", 0), ("conv1.1.running_var", 0), ("conv2.0.weight", 1)} <= groups[
        "conv1.0.weight"
    ]
    assert ("fc.weight", 1) in groups["conv2.0.weight"]
    assert "fc.weight" not in groups


def test_residual_branches_share_one_group() -> None:
    group = axes_by_first("residual")["stem.0.weight"]

    assert {("first.1.weight", 0), ("second.1.weight", 0), ("head.weight", 1)} <= group


def test_concatenated_parts_stay_apart() -> None:
    groups = axes_by_first("dense")

    assert len(groups) == 3
    assert all(("head.weight", 1) in group for group in groups.values())


def test_depthwise_and_gate_go_with_their_channel() -> None:
    groups = axes_by_first("squeeze-excite")

    assert {("depthwise.0.weight", 0), ("expand.weight", 0), ("reduce.weight", 1)} <= groups[
        "stem.0.weight"
    ]
    assert groups["reduce.weight"] == {
        ("reduce.weight", 0),
        ("reduce.bias", 0),
        ("expand.weight", 1),
    }


def test_a_layer_that_runs_twice_is_one_group() -> None:
    [group] = axes_by_first("reused").values()

    assert {("twice.weight", 0), ("twice.weight", 1), ("first.weight", 0)} <= group


def test_features_of_one_channel_are_one_unit() -> None:
    model, inputs = build("plain")
    dependencies = find_dependencies(model, inputs)

    [block] = [one for one in dependencies.blocks["fc.weight"] if one.axis == 1]

    assert len(set(dependencies.roots[block.ids].ravel().tolist())) == 12


def test_normalised_axes_are_frozen_with_a_reason() -> None:
    model, inputs = build("normalised")

    strict = find_dependencies(model, inputs)
    loose = find_dependencies(model, inputs, allow_norm_change=True)

    assert "allow_norm_change=True" in strict.reasons()["norm.weight"]
    assert "norm.weight" not in loose.reasons()
    assert loose.changed_norms == ("norm",)


def test_operations_without_a_rule_freeze_their_inputs() -> None:
    model, inputs = build("sorted")
    dependencies = find_dependencies(model, inputs)

    assert "no rule" in dependencies.reasons()["first.weight"]
    assert [group.axes[0][0] for group in dependencies.groups()] == ["second.weight"]


def test_units_of_a_module_can_be_frozen() -> None:
    model, inputs = build("plain")
    dependencies = find_dependencies(model, inputs)

    dependencies.freeze(dependencies.units_of_module("conv2"), "a test")

    assert dependencies.groups() == []
    assert dependencies.reasons()["conv1.0.bias"] == "a test"


def test_operations_after_the_deadline_keep_their_sizes() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))
    reads = itertools.count()  # one read a node, as if each took a second

    dependencies = find_dependencies(
        model, torch.zeros(1, 4), deadline=Deadline(6.0, lambda: float(next(reads)))
    )

    assert 0 < len(dependencies.groups()) < 5
    assert dependencies.reasons()["4.weight"] == "planning exceeded time_limit_s=6 (t in 4)"


def test_a_deadline_during_the_choice_of_axes_leaves_the_first_choice() -> None:
    model, tokens = build("grouped-queries")
    ticks = itertools.count()
    find_dependencies(model, tokens, deadline=Deadline(1e9, lambda: float(next(ticks))))
    whole = next(ticks)
    first = len(capture(model, tokens).nodes) + 2
    assert first < whole  # further choices were tried

    reads = itertools.count()
    found = find_dependencies(
        model, tokens, deadline=Deadline(first + 3.0, lambda: float(next(reads)))
    )

    assert all("planning exceeded" not in one for one in found.reasons().values())
