"""Values that depend on choices."""

import pytest

import nni
from nni.mutable import ExpressionConstraint, MutableList
from nni.nas.profiler.pytorch.cases import (
    MOST_CASES,
    CannotProfileError,
    added,
    frozen,
    leaves_of,
    samples_of,
    switch,
    tabulated,
)

WIDTH = nni.choice("width", [4, 8])
INPUT = nni.choice("layer", ["a", "b"])


def test_equal_branches_need_no_choice() -> None:
    assert switch(INPUT, {"a": 3, "b": 3}) == 3
    assert frozen(switch(INPUT, {"a": WIDTH, "b": 3}), {"layer": "b", "width": 8}) == 3


def test_labels_of_several_values_are_collected_once() -> None:
    assert set(leaves_of([WIDTH * 2, 3, WIDTH + 1, INPUT])) == {"width", "layer"}


def test_constraints_are_no_values() -> None:
    rule = ExpressionConstraint(WIDTH > 4, label="rule")

    assert set(leaves_of([MutableList([WIDTH, rule])])) == {"width"}


def test_function_is_tabulated_over_all_combinations() -> None:
    cost = tabulated(
        {"width": WIDTH, "layer": INPUT},
        lambda sample: sample["width"] * (1 if sample["layer"] == "a" else 10),
        reason="test",
    )

    assert cost.freeze({"width": 8, "layer": "a"}) == 8
    assert cost.freeze({"width": 4, "layer": "b"}) == 40


def test_without_labels_the_function_is_called_once() -> None:
    assert tabulated({}, lambda sample: 7, reason="test") == 7


def test_too_many_combinations_are_refused_with_a_remedy() -> None:
    leaves = {f"x{at}": nni.choice(f"x{at}", list(range(9))) for at in range(3)}

    with pytest.raises(CannotProfileError, match=f"more than {MOST_CASES} combinations; register"):
        list(samples_of(leaves, reason="test"))


def test_zero_adds_nothing_to_an_expression() -> None:
    assert added(0, WIDTH) is WIDTH
    assert added(WIDTH, 0) is WIDTH
    assert added(WIDTH, 1).freeze({"width": 4}) == 5
