"""Values that depend on choices, as expressions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from nni.mutable import LabeledMutable, Mutable, MutableExpression, Sample
from nni.mutable.expression import apply

Number = Any
"""Number, or expression of one."""

MOST_CASES: Final = 512
"""Combinations of values that are tried one by one for a module without a formula."""


class CannotProfileError(TypeError):
    """Error: a module or function has no formula that profilers could use.

    Examples:
        >>> raise CannotProfileError("no shape formula for torch.fft.fft")
        Traceback (most recent call last):
        nni.nas.profiler.pytorch.cases.CannotProfileError: no shape formula for torch.fft.fft
    """


def added(first: Number, second: Number) -> Number:
    """Return a sum; zero adds nothing, so that expressions stay short.

    Args:
        first: number or expression.
        second: number or expression.

    Examples:
        >>> import nni
        >>> added(0, nni.choice("width", [4, 8]) * 2), added(1, 2)
        ((width * 2), 3)
    """
    if not isinstance(first, Mutable) and first == 0:
        return second
    if not isinstance(second, Mutable) and second == 0:
        return first
    return first + second


def same(values: Iterable[Any]) -> bool:
    """Return whether all values are equal; expressions are if they have equal steps.

    Args:
        values: numbers and expressions.

    Examples:
        >>> import nni
        >>> width = nni.choice("width", [4, 8])
        >>> same([width * 2, width * 2]), same([width * 2, 8])
        (True, False)
    """
    first, *others = values
    return all(_equal(first, other) for other in others)


def _equal(first: Any, other: Any) -> bool:  # noqa: ANN401 - number or expression
    if isinstance(first, Mutable) or isinstance(other, Mutable):
        return first is other or (isinstance(first, Mutable) and first.equals(other))
    return bool(first == other)


def switch(selector: Number, branches: Mapping[Any, Number]) -> Number:
    """Return an expression of the chosen branch's value; the value itself if all are equal.

    Args:
        selector: number or expression, compared with the keys.
        branches: key to value.

    Examples:
        >>> import nni
        >>> layer = nni.choice("layer", ["a", "b"])
        >>> switch(layer, {"a": 1, "b": 2}), switch(layer, {"a": 1, "b": 1})
        (switch_case(layer, {'a': 1, 'b': 2}), 1)
    """
    if same(branches.values()):
        return next(iter(branches.values()))
    return MutableExpression.switch_case(selector, branches)


def leaves_of(values: Iterable[Any]) -> dict[str, LabeledMutable]:
    """Return the labeled mutables, but no constraints, that values depend on, by label.

    Args:
        values: numbers, expressions and mutable modules.

    Examples:
        >>> import nni
        >>> list(leaves_of([3, nni.choice("width", [4, 8]) * 2]))
        ['width']
    """
    leaves: dict[str, LabeledMutable] = {}
    for value in values:
        if isinstance(value, Mutable):
            leaves |= value.simplify()
    # Constraints have labels too, but no value.
    return {label: leaf for label, leaf in leaves.items() if isinstance(leaf, MutableExpression)}


def samples_of(leaves: Mapping[str, LabeledMutable], *, reason: str) -> Iterator[Sample]:
    """Yield each combination of the values of some labels; raise if there are too many.

    Args:
        leaves: mutables by label.
        reason: why they are enumerated, for the error.

    Raises:
        CannotProfileError: there are more than `MOST_CASES`.

    Examples:
        >>> import nni
        >>> list(samples_of({"width": nni.choice("width", [4, 8])}, reason="a test"))
        [{'width': 4}, {'width': 8}]
    """
    values = [
        list(itertools.islice(leaf.grid(granularity=3), MOST_CASES + 1)) for leaf in leaves.values()
    ]
    number = 1
    for one in values:
        number *= len(one)
    if number > MOST_CASES:
        raise CannotProfileError(
            f"{reason}: its {', '.join(leaves)} have more than {MOST_CASES} combinations; register "
            "a formula, or profile frozen networks by count_flops_params"
        )
    for combination in itertools.product(*values):
        yield dict(zip(leaves, combination, strict=True))


def tabulated(
    leaves: Mapping[str, LabeledMutable], function: Callable[[Sample], Any], *, reason: str
) -> Number:
    """Return an expression that looks up a function's results, computed now per combination.

    Args:
        leaves: mutables by label; without any the function is called once.
        function: called with each combination.
        reason: why they are enumerated, for the error.

    Examples:
        >>> import nni
        >>> width = nni.choice("width", [4, 8])
        >>> squared = tabulated({"width": width}, lambda one: one["width"] ** 2, reason="a test")
        >>> squared.freeze({"width": 8})
        64
    """
    branches = {
        _key(*sample.values()): function(sample) for sample in samples_of(leaves, reason=reason)
    }
    return switch(apply(_key, list(leaves.values())), branches)


def _key(*values: Any) -> tuple[Any, ...]:  # noqa: ANN401 - values of labels
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def frozen(value: Number, sample: Sample) -> Number:
    """Return the value of an expression for a sample; of a number the number.

    Args:
        value: number or expression.
        sample: value of each label.

    Examples:
        >>> import nni
        >>> frozen(nni.choice("width", [4, 8]) * 2, {"width": 8}), frozen(3, {})
        (16, 3)
    """
    return value.freeze(sample) if isinstance(value, Mutable) else value
