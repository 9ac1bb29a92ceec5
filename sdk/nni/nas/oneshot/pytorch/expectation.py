"""Expected value of an expression under independent probabilities of its labels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nni.mutable import LabeledMutable, Mutable, MutableExpression, Sample
from nni.nas.oneshot.pytorch.alternatives import combinations

Weights = Mapping[str, Tensor]
"""Probability of each value by label, `(values,)`, in the order of `alternatives`."""
_Term = Callable[[Weights], Tensor]

_LINEAR = {operator.add, operator.sub, operator.neg, operator.pos, float}


class Expectation:
    """Expected value of an expression, differentiable in the probabilities.

    Sums, and products of independent factors, are split. A `switch_case` or `condition` is split
    by the value that decides, if the branches do not depend on its labels. Every other part is
    computed once for each combination of the values that it depends on.

    Args:
        expression: expression of choices, or a plain number.

    Raises:
        TypeError: a leaf is no choice among values.
        ValueError: a part that cannot be split has too many combinations.

    Examples:
        >>> from nni.mutable import Categorical
        >>> kernel = Categorical([3, 5, 7], label="kernel")
        >>> flops = Expectation(1000 * kernel * kernel)
        >>> flops.under({"kernel": torch.tensor([0.2, 0.3, 0.5])})
        tensor(33800.)
    """

    def __init__(self, expression: Any) -> None:  # noqa: ANN401 - expression or number
        self._term: _Term
        self.labels: list[str] = []
        """Labels that the expression depends on."""
        if not isinstance(expression, Mutable):
            self._term = _constant(float(expression))
        elif isinstance(expression, MutableExpression):
            self._term = _Splitter(expression).term()
            self.labels = list(expression.simplify())
        else:
            raise TypeError(f"expression must be a MutableExpression, got {expression!r}")

    def under(self, weights: Weights) -> Tensor:
        """Return the expected value under probabilities by label: 0-dimensional, differentiable.

        Args:
            weights: probability of each value by label.

        Returns:
            0-dimensional tensor.

        Raises:
            KeyError: a label has no probabilities.
        """
        return self._term(weights)


class _Splitter:
    """Translation of the steps of an expression to terms whose expectations are known."""

    def __init__(self, expression: MutableExpression) -> None:
        self._steps = expression.steps()
        self._labels: list[dict[str, LabeledMutable]] = []
        for step in self._steps:
            found: dict[str, LabeledMutable] = {}
            if step.kind == "leaf":
                found[step.content.label] = step.content
            for at in step.inputs:
                found |= self._labels[at]
            self._labels.append(found)
        self._terms: dict[int, _Term] = {}

    def term(self) -> _Term:
        """Return the term of the whole expression; without recursion, since sums are long."""
        last = len(self._steps) - 1
        needed = {last}
        for at in range(last, -1, -1):
            if at in needed:
                needed.update(self._parts(at))
        for at in sorted(needed):
            self._terms[at] = self._made(at)
        return self._terms[last]

    def _parts(self, at: int) -> Sequence[int]:
        """Return the inputs whose expectations determine a step's; none if it needs a table."""
        step = self._steps[at]
        if step.kind != "call" or not self._labels[at]:
            return ()
        if step.content in _LINEAR or self._is_product(at):
            return step.inputs
        if self._is_switch(at):
            return step.inputs[2::2]
        return ()

    def _is_product(self, at: int) -> bool:
        step = self._steps[at]
        if step.content is operator.truediv:
            return not self._labels[step.inputs[1]]
        return step.content is operator.mul and self._independent(*step.inputs)

    def _is_switch(self, at: int) -> bool:
        step = self._steps[at]
        if not step.template.startswith("switch_case("):
            return False
        decides, *branches = step.inputs
        keys = branches[::2]
        return not any(self._labels[key] for key in keys) and all(
            self._independent(decides, branch) for branch in branches[1::2]
        )

    def _independent(self, first: int, second: int) -> bool:
        return self._labels[first].keys().isdisjoint(self._labels[second].keys())

    def _made(self, at: int) -> _Term:
        step = self._steps[at]
        if not self._labels[at]:
            return _constant(float(self._value(at, {})))
        parts = [self._terms[part] for part in self._parts(at)]
        if not parts:
            return self._table(at, lambda sample: float(self._value(at, sample)))
        if self._is_switch(at):
            return self._switch(at, parts)
        function = step.content
        if function is float:
            return parts[0]
        return lambda weights: function(*(part(weights) for part in parts))

    def _switch(self, at: int, branches: Sequence[_Term]) -> _Term:
        decides, *flat = self._steps[at].inputs
        keys = [self._value(key, {}) for key in flat[::2]]
        chances = [self._table(decides, partial(self._equals, decides, key)) for key in keys]

        def term(weights: Weights) -> Tensor:
            pairs = zip(chances, branches, strict=True)
            return torch.stack(
                [chance(weights) * branch(weights) for chance, branch in pairs]
            ).sum()

        return term

    def _equals(self, at: int, key: object, sample: Sample) -> float:
        return float(self._value(at, sample) == key)

    def _table(self, at: int, value: Callable[[Sample], float]) -> _Term:
        """Return the term of a step that is computed for each combination of its labels."""
        leaves = self._labels[at]
        table = torch.tensor([value(sample) for sample in combinations(leaves.values())])

        def term(weights: Weights) -> Tensor:
            return table.to(next(iter(weights.values())).device) @ joint(weights, leaves)

        return term

    def _value(self, at: int, sample: Sample) -> Any:  # noqa: ANN401 - the user's value
        """Return the result of a step for a sample."""
        results: dict[int, Any] = {}
        needed = {at}
        for one in range(at, -1, -1):
            if one in needed:
                needed.update(self._steps[one].inputs)
        for one in sorted(needed):
            step = self._steps[one]
            match step.kind:
                case "call":
                    results[one] = step.content(*(results[part] for part in step.inputs))
                case "leaf":
                    results[one] = step.content.value_in(sample)
                case _:
                    results[one] = step.content
        return results[at]


def joint(weights: Weights, labels: Mapping[str, object]) -> Tensor:
    """Return the probability of each combination of independent choices, the last fastest.

    Args:
        weights: probability of each value by label.
        labels: labels of the choices, in order.

    Returns:
        `(combinations,)`, the last label changes fastest.
    """
    total: Tensor | None = None
    for label in labels:
        one = weights[label]
        total = one if total is None else torch.outer(total, one).flatten()
    assert total is not None
    return total


def _constant(value: float) -> _Term:
    return lambda weights: torch.tensor(value, device=next(iter(weights.values())).device)
