"""Expressions compute at freezing what the operators say."""

import copy
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nni
from nni.mutable import (
    Categorical,
    MutableExpression,
    MutableList,
    SampleMissingError,
    SampleValidationError,
)
from nni.mutable.expression import apply

A = Categorical([2, 3], label="a")
B = Categorical([5, 7], label="b")
SAMPLE = {"a": 3, "b": 7}

BINARY: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("function", BINARY)
def test_operator_of_two_symbols_and_of_one_with_a_number(function: Callable[..., Any]) -> None:
    assert function(A, B).freeze(SAMPLE) == function(3, 7)
    assert function(A, 2).freeze(SAMPLE) == function(3, 2)
    assert function(2, A).freeze(SAMPLE) == function(2, 3)


def test_matrix_product_from_both_sides() -> None:
    row, column = np.array([1, 2]), np.array([3, 4])
    vectors = Categorical([row, column], label="v")

    assert (vectors @ column).freeze({"v": row}) == 11
    assert MutableExpression(operator.matmul, [column, vectors]).freeze({"v": row}) == 11
    assert (column @ vectors).freeze({"v": row}) == 11


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (operator.neg, 2.6),
        (operator.pos, 2.6),
        (abs, -2.6),
        (round, 2.6),
        (math.floor, 2.6),
        (math.ceil, 2.2),
        (math.trunc, 2.6),
        (operator.invert, 5),
    ],
)
def test_operator_of_one_symbol(function: Callable[..., Any], value: float) -> None:
    assert function(Categorical([value], label="x")).freeze({"x": value}) == function(value)


def test_round_takes_digits() -> None:
    assert round(Categorical([2.678], label="x"), 1).freeze({"x": 2.678}) == 2.7


def test_inverting_a_truth_value_negates_it() -> None:
    assert (~(A == 3)).freeze(SAMPLE) is False


def test_numbers_of_numpy_leave_the_operator_to_the_expression() -> None:
    number: Any = np.int64(4)

    assert (number * A).freeze(SAMPLE) == 12
    assert not (number < A).freeze(SAMPLE)


def test_indexing() -> None:
    sizes = Categorical([{"kernel": 3}, {"kernel": 5}], label="s")

    assert sizes["kernel"].freeze({"s": {"kernel": 5}}) == 5
    assert MutableExpression(operator.getitem, [[10, 20, 30, 40], A]).freeze(SAMPLE) == 40


@pytest.mark.claim("nas", 19)
def test_grid_combines_the_leaves() -> None:
    assert list((A + B).grid()) == [7, 9, 8, 10]


def test_default_and_random_are_of_the_leaves() -> None:
    memo = {"b": 7}

    assert (A + B).default(memo) == 9
    assert memo == {"b": 7, "a": 2}
    assert (A * 1).random() in {2, 3}


@pytest.mark.claim("nas", 24)
def test_comparison_is_neither_true_nor_false() -> None:
    with pytest.raises(RuntimeError, match="neither true nor false"):
        bool(Categorical([1, 2], label="x") > 1)


@pytest.mark.parametrize(
    "use",
    [bool, int, float, operator.index, lambda value: [1, 2, 3][value], lambda value: A == B and 1],
)
def test_use_before_a_sample_is_there_is_refused(use: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="before a sample is there"):
        use(A)


@pytest.mark.parametrize("use", [list, lambda value: 1 in value])
def test_expression_is_no_container(use: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="before a sample is there"):
        use(A + 1)


def test_conversions() -> None:
    assert repr(MutableExpression.to_int(A / 2).freeze(SAMPLE)) == "1"
    assert repr(MutableExpression.to_float(A).freeze(SAMPLE)) == "3.0"
    assert MutableExpression.to_int(3.7) == 3
    assert MutableExpression.to_float(3) == 3.0


def test_condition_chooses() -> None:
    chosen = MutableExpression.condition(A > 2, B, "small")

    assert chosen.freeze(SAMPLE) == 7
    assert chosen.freeze({"a": 2, "b": 7}) == "small"


def test_case_takes_the_first_true_predicate() -> None:
    chosen = MutableExpression.case([(A > 5, 1), (A > 2, B), (True, 3)])

    assert chosen.freeze(SAMPLE) == 7
    assert chosen.freeze({"a": 2, "b": 5}) == 3


def test_case_without_a_true_predicate_raises() -> None:
    with pytest.raises(ValueError, match="one of the 1 predicates"):
        MutableExpression.case([(A > 5, 1)]).freeze(SAMPLE)


def test_switch_case_finds_the_branch() -> None:
    chosen = MutableExpression.switch_case(A, {2: "two", 3: B})

    assert chosen.freeze(SAMPLE) == 7
    assert repr(chosen) == "switch_case(a, {2: 'two', 3: b})"


def test_switch_case_needs_the_labels_of_all_branches() -> None:
    with pytest.raises(SampleMissingError, match="'b'"):
        MutableExpression.switch_case(A, {2: "two", 3: B}).freeze({"a": 2})


def test_switch_case_without_a_branch_raises() -> None:
    with pytest.raises(ValueError, match=r"must have a branch for 3, its keys are \(2,\)"):
        MutableExpression.switch_case(A, {2: "two"}).freeze(SAMPLE)


def test_largest_and_smallest() -> None:
    assert MutableExpression.max(A, B, 4).freeze(SAMPLE) == 7
    assert MutableExpression.min([A, B, 4]).freeze(SAMPLE) == 3
    assert MutableExpression.max(1, 2) == 2


def test_text_shows_the_labels() -> None:
    assert repr((A + B) * 2 == 5) == "(((a + b) * 2) == 5)"
    assert repr(MutableExpression(math.hypot, [A, B])) == "hypot(a, b)"


def test_long_text_is_cut() -> None:
    total = sum([A] * 1000, start=A + 0)

    assert len(repr(total)) < 500
    assert "..." in repr(total)


def test_sum_that_is_nested_deeper_than_the_stack_works() -> None:
    total = sum([A] * 5000, start=A + 0)

    assert total.freeze(SAMPLE) == 3 * 5001
    assert pickle.loads(pickle.dumps(total)).equals(total)


def test_shared_part_is_computed_once() -> None:
    doubled: Any = A
    for _ in range(60):
        doubled = doubled + doubled

    assert doubled.freeze(SAMPLE) == 3 * 2**60
    assert len(doubled.steps()) == 61
    assert len(repr(doubled)) < 500


def test_copies_are_the_object_itself() -> None:
    total = A + B

    assert copy.copy(total) is total
    assert copy.deepcopy(total) is total
    assert copy.deepcopy(A) is A


def test_pickle_keeps_the_structure() -> None:
    total = MutableExpression.condition(A > 2, B, "small")

    loaded = pickle.loads(pickle.dumps(total))

    assert loaded.equals(total)
    assert loaded.freeze(SAMPLE) == 7


def test_dumped_expression_is_equal_and_no_pickle() -> None:
    shape = MutableExpression(operator.getitem, [[(1, 2), (3, 4), (5, 6), (7, 8)], A])
    total = MutableExpression.case([(A > 2, abs(B) + math.pi), (~(A == 2), shape)])

    text = nni.dump(total)
    loaded = nni.load(text)

    assert "__nni_obj__" not in text
    assert loaded.equals(total)
    assert loaded.freeze({"a": 3, "b": 7}) == 7 + math.pi


def test_equal_structure_is_equal() -> None:
    assert (A + B).equals(A + Categorical([5, 7], label="b"))
    assert not (A + B).equals(B + A)
    assert not (A + 1).equals(A + 2)
    assert not (A + 1).equals(A)


def test_mutables_without_arithmetic_are_refused() -> None:
    with pytest.raises(TypeError, match="arguments of an expression must be symbols"):
        A + MutableList([])


def test_sample_outside_a_symbol_is_found() -> None:
    with pytest.raises(SampleValidationError, match="'a' must be one of"):
        (A + B).freeze({"a": 4, "b": 7})


def test_call_without_mutables_is_made_at_once() -> None:
    assert apply(max, [1, 2]) == 2
    assert isinstance(apply(max, [1, A]), MutableExpression)


def test_expressions_can_be_keys() -> None:
    total = A + B

    assert {total: 1}[total] == 1
