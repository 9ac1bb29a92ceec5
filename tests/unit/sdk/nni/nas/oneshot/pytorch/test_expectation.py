"""Expected value of an expression, compared with the sum over all samples."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from nni.mutable import Categorical, MutableExpression
from nni.nas.oneshot.pytorch.expectation import Expectation

A = Categorical([1, 2], label="a")
B = Categorical([3, 5, 7], label="b")
C = Categorical(["x", "y"], label="c")
WEIGHTS = {
    "a": torch.tensor([0.25, 0.75]),
    "b": torch.tensor([0.5, 0.2, 0.3]),
    "c": torch.tensor([0.6, 0.4]),
}
CASES: dict[str, Callable[[], Any]] = {
    "sum": lambda: A + B - 1,
    "product of independent factors": lambda: (A + 1) * B,
    "product of the same factor": lambda: A * A * B,
    "quotient": lambda: B / 2 + 4 / A,
    "rounded": lambda: (B * A) // 4,
    "switch": lambda: MutableExpression.switch_case(C, {"x": A * B, "y": 10}),
    "switch whose branch depends on its own label": lambda: MutableExpression.switch_case(
        A, {1: B, 2: A + B}
    ),
    "condition": lambda: MutableExpression.condition(A > 1, B, 0.5),
    "casts": lambda: MutableExpression.to_float(A) + (-B),
}


@pytest.mark.parametrize("case", CASES)
def test_expectation_equals_the_sum_over_all_samples(case: str) -> None:
    expression = CASES[case]()
    expected = 0.0
    for at, a in enumerate(A.values):
        for bt, b in enumerate(B.values):
            for ct, c in enumerate(C.values):
                weight = WEIGHTS["a"][at] * WEIGHTS["b"][bt] * WEIGHTS["c"][ct]
                expected += float(weight) * float(expression.freeze({"a": a, "b": b, "c": c}))

    assert float(Expectation(expression).under(WEIGHTS)) == pytest.approx(expected, rel=1e-6)


def test_gradient_reaches_the_probabilities() -> None:
    weights = {"b": torch.tensor([0.5, 0.2, 0.3], requires_grad=True)}

    torch.autograd.backward(Expectation(B * B).under(weights))

    assert weights["b"].grad is not None
    assert weights["b"].grad.tolist() == [9, 25, 49]


def test_long_sum_needs_no_enumeration() -> None:
    leaves = [Categorical([0, 1], label=f"layer_{index}") for index in range(300)]
    total: Any = 0
    for leaf in leaves:
        total = total + leaf
    half: dict[str, torch.Tensor] = {leaf.label: torch.tensor([0.5, 0.5]) for leaf in leaves}

    assert float(Expectation(total).under(half)) == 150


def test_number_is_its_own_expectation() -> None:
    assert float(Expectation(3).under(WEIGHTS)) == 3


def test_labels_are_those_of_the_expression() -> None:
    expression = Categorical([1, 2], label="a") * Categorical([1, 2], label="b")

    assert Expectation(expression).labels == ["a", "b"]
    assert Expectation(3).labels == []
