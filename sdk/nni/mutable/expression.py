"""Expressions of mutables, which are computed for a given sample."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Self, SupportsIndex

from nni.mutable.base import LabeledMutable, Mutable, Sample
from nni.mutable.errors import SampleValidationError, UndecidedError
from nni.mutable.record import equal_values, marked, unmarked

_TEXT_LENGTH = 400
"""Characters of a text, after which its middle is left out; an expression may have thousands."""

_UNDECIDED = (
    "an expression has no value before a sample is there, so it is neither true nor false and no "
    "number; use MutableExpression.condition, max, min, to_int or to_float, or freeze it first"
)


class ExpressionStep(NamedTuple):
    """One step of the computation of an expression; its result is known by the step's number."""

    kind: str
    """`constant`, `leaf` or `call`."""
    content: Any
    """The constant, the leaf, or the function."""
    inputs: tuple[int, ...] = ()
    """Numbers of the steps whose results are the arguments of a call."""
    template: str = ""


class MutableExpression(Mutable):
    """Function of other mutables, computed at freezing; arithmetic on symbols makes one.

    Operators: `+ - * / // % ** @`, `- + ~`, comparisons, `& |`, `abs`, `round`, `math.floor`,
    `math.ceil`, and indexing. `~` of a truth value negates it. `bool(expression)`,
    `int(expression)` and the use as an index raise `RuntimeError`, because no sample is there yet;
    the static methods take their place.

    All arguments are computed, also those that a condition does not choose, so a sample has to
    hold the labels of all of them. A part that occurs many times is computed once.

    Args:
        function: called with the concrete arguments. It must be importable by name to be
            serialized.
        arguments: mutable expressions and plain values.
        template: text with one `{}` for each argument; empty: the function's name and its
            arguments.

    Raises:
        TypeError: an argument is a mutable but no expression.

    Examples:
        >>> from nni.mutable import Categorical
        >>> a, b = Categorical([2, 3], label="a"), Categorical([5, 7], label="b")
        >>> a + b
        (a + b)
        >>> list((a + b).grid())
        [7, 9, 8, 10]
        >>> MutableExpression.condition(a > 2, "large", b).freeze({"a": 2, "b": 7})
        7
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Iterable[Any], template: str = ""
    ) -> None:
        self.function = function
        self.arguments = tuple(arguments)
        self.template = template
        for argument in self.arguments:
            if isinstance(argument, Mutable) and not isinstance(argument, MutableExpression):
                raise TypeError(f"arguments of an expression must be symbols, got {argument!r}")
        self._compiled: tuple[ExpressionStep, ...] | None = None

    @staticmethod
    def to_int(value: Any) -> Any:  # noqa: ANN401 - int, or an expression of one
        """Return the expression of a value truncated to an integer; of a plain number the integer.

        Args:
            value: number or expression.

        Returns:
            An expression; of a plain number the integer.
        """
        return apply(int, [value], "int({})")

    @staticmethod
    def to_float(value: Any) -> Any:  # noqa: ANN401 - float, or an expression of one
        """Return the expression of a value as a float; of a plain number the float.

        Args:
            value: number or expression.

        Returns:
            An expression; of a plain number the floating-point number.
        """
        return apply(float, [value], "float({})")

    @staticmethod
    def condition(predicate: Any, when_true: Any, when_false: Any) -> Any:  # noqa: ANN401 - any value
        """Return `when_true` or `when_false` by a predicate, as an expression unless all are plain.

        Args:
            predicate: truth value or expression.
            when_true: value if it is true.
            when_false: value if it is false.

        Returns:
            An expression; of plain values the chosen one.
        """
        return apply(_condition, [predicate, when_true, when_false], "condition({}, {}, {})")

    @staticmethod
    def case(branches: Iterable[tuple[Any, Any]]) -> Any:  # noqa: ANN401 - any value
        """Return the value of the first true predicate, as an expression unless all are plain.

        Freezing raises `ValueError` if none is.

        Args:
            branches: predicate and value, each.

        Returns:
            An expression; of plain values the chosen one.
        """
        flat = [part for branch in branches for part in branch]
        return apply(_case, flat, f"case({_pairs('({}, {})', len(flat))})")

    @staticmethod
    def switch_case(value: Any, branches: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - any value
        """Return the branch whose key equals a value, as an expression unless all are plain.

        Freezing raises `ValueError` if there is none.

        Args:
            value: compared with the keys.
            branches: value to result.

        Returns:
            An expression; of plain values the chosen one.
        """
        flat = [part for branch in branches.items() for part in branch]
        text = f"switch_case({{}}, {{{{{_pairs('{}: {}', len(flat))}}}}})"
        return apply(_switch_case, [value, *flat], text)

    @staticmethod
    def max(*values: Any) -> Any:  # noqa: ANN401 - any value
        """Return the largest of values, or of one iterable, as an expression unless all are plain.

        Args:
            values: numbers and expressions.

        Returns:
            An expression; of plain values the largest.
        """
        given = _flattened(values)
        return apply(max, given, f"max({_listed(len(given))})")

    @staticmethod
    def min(*values: Any) -> Any:  # noqa: ANN401 - any value
        """Return the smallest of values, or of one iterable, as an expression unless all are plain.

        Args:
            values: numbers and expressions.

        Returns:
            An expression; of plain values the smallest.
        """
        given = _flattened(values)
        return apply(min, given, f"min({_listed(len(given))})")

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the symbols, each object once, from left to right."""
        for symbol in self._symbols():
            yield from symbol.leaf_mutables(is_leaf)

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return the first error of a symbol; None if the sample has a value for each."""
        errors = (symbol.check_contains(sample) for symbol in self._symbols())
        return next((error for error in errors if error is not None), None)

    def freeze(self, sample: Sample) -> Any:  # noqa: ANN401 - the user's value
        """Compute the expression for a sample; raise if a label is missing or invalid."""
        self.validate(sample)
        results: list[Any] = []
        for step in self.steps():
            if step.kind == "call":
                results.append(step.content(*[results[at] for at in step.inputs]))
            elif step.kind == "leaf":
                results.append(step.content.value_in(sample))
            else:
                results.append(step.content)
        return results[-1]

    def equals(self, other: object) -> bool:
        """Return whether another expression has equal steps."""
        if self is other or type(other) is not type(self):
            return self is other
        assert isinstance(other, MutableExpression)
        mine, theirs = ([tuple(step) for step in one.steps()] for one in (self, other))
        return equal_values(mine, theirs)

    def _symbols(self) -> Iterator[LabeledMutable]:
        return (step.content for step in self.steps() if step.kind == "leaf")

    def steps(self) -> tuple[ExpressionStep, ...]:
        """Return the steps of the computation, inputs first, the result last; computed once.

        Returns:
            Steps whose inputs are earlier ones; the last one is the result.
        """
        if self._compiled is None:
            self._compiled = tuple(_steps_of(self))
        return self._compiled

    def __bool__(self) -> bool:
        raise UndecidedError(_UNDECIDED)

    def __index__(self) -> int:
        raise UndecidedError(_UNDECIDED)

    def __int__(self) -> int:
        raise UndecidedError(_UNDECIDED)

    def __float__(self) -> float:
        raise UndecidedError(_UNDECIDED)

    def __iter__(self) -> NoReturn:
        raise TypeError(_UNDECIDED)

    def __contains__(self, _: object) -> bool:
        raise TypeError(_UNDECIDED)

    __array_ufunc__ = None
    """Makes numbers of numpy leave operators to this class."""

    __hash__ = object.__hash__

    def __copy__(self) -> Self:
        return self  # nothing changes it

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # Flat: a sum over hundreds of layers is nested deeper than the recursion limit.
        return _rebuilt, (self.steps(),)

    def _dump(self) -> dict[str, Any]:
        """Return what `nni.dump` writes of this expression: its steps, functions by name."""
        return {"steps": [[*step[:2], list(step.inputs), step.template] for step in self._marked()]}

    def _marked(self) -> Iterator[ExpressionStep]:
        for step in self.steps():
            yield step._replace(content=marked(step.content)) if step.kind == "constant" else step

    @classmethod
    def _load(cls, *, steps: list[list[Any]]) -> "MutableExpression":
        """Return the expression whose `_dump` has been read."""
        return _rebuilt(
            [
                ExpressionStep(
                    kind,
                    unmarked(content) if kind == "constant" else content,
                    tuple(inputs),
                    template,
                )
                for kind, content, inputs, template in steps
            ]
        )

    def __repr__(self) -> str:
        texts: list[str] = []
        for step in self.steps():
            if step.kind == "call":
                template = step.template or f"{step.content.__name__}({_listed(len(step.inputs))})"
                texts.append(_shortened(template.format(*[texts[at] for at in step.inputs])))
            else:
                leaf = step.kind == "leaf"
                texts.append(str(step.content.label) if leaf else _shortened(repr(step.content)))
        return texts[-1]

    def __getitem__(self, key: Any) -> "MutableExpression":  # noqa: ANN401 - any key
        return MutableExpression(operator.getitem, [self, key], "{}[{}]")

    def __abs__(self) -> "MutableExpression":
        return MutableExpression(abs, [self], "abs({})")

    def __round__(self, digits: Any = None) -> "MutableExpression":  # noqa: ANN401 - may be one
        given = [self] if digits is None else [self, digits]
        return MutableExpression(round, given, f"round({_listed(len(given))})")

    def __floor__(self) -> "MutableExpression":
        return MutableExpression(math.floor, [self], "floor({})")

    def __ceil__(self) -> "MutableExpression":
        return MutableExpression(math.ceil, [self], "ceil({})")

    def __trunc__(self) -> "MutableExpression":
        return MutableExpression(math.trunc, [self], "trunc({})")

    def __neg__(self) -> "MutableExpression":
        return MutableExpression(operator.neg, [self], "(-{})")

    def __pos__(self) -> "MutableExpression":
        return MutableExpression(operator.pos, [self], "(+{})")

    def __invert__(self) -> "MutableExpression":
        return MutableExpression(_inverted, [self], "(~{})")

    def __add__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.add, [self, other], "({} + {})")

    def __radd__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.add, [other, self], "({} + {})")

    def __sub__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.sub, [self, other], "({} - {})")

    def __rsub__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.sub, [other, self], "({} - {})")

    def __mul__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.mul, [self, other], "({} * {})")

    def __rmul__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.mul, [other, self], "({} * {})")

    def __truediv__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.truediv, [self, other], "({} / {})")

    def __rtruediv__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.truediv, [other, self], "({} / {})")

    def __floordiv__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.floordiv, [self, other], "({} // {})")

    def __rfloordiv__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.floordiv, [other, self], "({} // {})")

    def __mod__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.mod, [self, other], "({} % {})")

    def __rmod__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.mod, [other, self], "({} % {})")

    def __pow__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.pow, [self, other], "({} ** {})")

    def __rpow__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.pow, [other, self], "({} ** {})")

    def __matmul__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.matmul, [self, other], "({} @ {})")

    def __rmatmul__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.matmul, [other, self], "({} @ {})")

    def __and__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.and_, [self, other], "({} & {})")

    def __rand__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.and_, [other, self], "({} & {})")

    def __or__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.or_, [self, other], "({} | {})")

    def __ror__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.or_, [other, self], "({} | {})")

    def __eq__(self, other: Any) -> "MutableExpression":  # type: ignore[override]  # noqa: ANN401 - it is an expression
        return MutableExpression(operator.eq, [self, other], "({} == {})")

    def __ne__(self, other: Any) -> "MutableExpression":  # type: ignore[override]  # noqa: ANN401 - it is an expression
        return MutableExpression(operator.ne, [self, other], "({} != {})")

    def __lt__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.lt, [self, other], "({} < {})")

    def __le__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.le, [self, other], "({} <= {})")

    def __gt__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.gt, [self, other], "({} > {})")

    def __ge__(self, other: Any) -> "MutableExpression":  # noqa: ANN401 - any value
        return MutableExpression(operator.ge, [self, other], "({} >= {})")


def apply(function: Callable[..., Any], arguments: Sequence[Any], template: str = "") -> Any:  # noqa: ANN401 - what the function returns
    """Return the expression of a call, or its result if no argument is mutable.

    Args:
        function: see `MutableExpression`.
        arguments: see `MutableExpression`.
        template: see `MutableExpression`.

    Returns:
        An expression, or what the function returns.

    Examples:
        >>> from nni.mutable import Categorical
        >>> apply(abs, [-3]), apply(abs, [Categorical([-1, 2], label="a")])
        (3, abs(a))
    """
    if any(isinstance(argument, Mutable) for argument in arguments):
        return MutableExpression(function, arguments, template)
    return function(*arguments)


def _steps_of(root: MutableExpression) -> Iterator[ExpressionStep]:
    """Yield the steps of an expression, inputs first, shared parts once; without recursion."""
    numbers: dict[int, int] = {}
    kept: list[Any] = []  # holds every part, so that no two have the same id
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        part, inputs_done = pending.pop()
        if id(part) in numbers:
            continue
        if isinstance(part, LabeledMutable):
            yield ExpressionStep("leaf", part)
        elif not isinstance(part, MutableExpression):
            yield ExpressionStep("constant", part)
        elif inputs_done:
            inputs = tuple(numbers[id(argument)] for argument in part.arguments)
            yield ExpressionStep("call", part.function, inputs, part.template)
        else:
            pending.append((part, True))
            pending.extend((argument, False) for argument in reversed(part.arguments))
            continue
        numbers[id(part)] = len(numbers)
        kept.append(part)


def _rebuilt(steps: Sequence[ExpressionStep]) -> MutableExpression:
    """Return the expression that has these steps."""
    parts: list[Any] = []
    for kind, content, inputs, template in steps:
        if kind == "call":
            parts.append(MutableExpression(content, [parts[at] for at in inputs], template))
        else:
            parts.append(content)
    result = parts[-1]
    assert isinstance(result, MutableExpression)
    return result


def _condition(predicate: object, when_true: object, when_false: object) -> object:
    return when_true if predicate else when_false


def _case(*flat: object) -> object:
    for predicate, value in zip(flat[::2], flat[1::2], strict=True):
        if predicate:
            return value
    raise ValueError(f"one of the {len(flat) // 2} predicates of a case must be true, got none")


def _switch_case(value: object, *flat: object) -> object:
    for key, result in zip(flat[::2], flat[1::2], strict=True):
        if key == value:
            return result
    raise ValueError(f"switch_case must have a branch for {value!r}, its keys are {flat[::2]}")


def _inverted(value: Any) -> Any:  # noqa: ANN401 - the user's value
    return not value if isinstance(value, bool) else ~value


def _flattened(values: tuple[Any, ...]) -> list[Any]:
    if len(values) == 1 and not isinstance(values[0], Mutable):
        return list(values[0])
    return list(values)


def _listed(number: int) -> str:
    return ", ".join(["{}"] * number)


def _pairs(template: str, number: int) -> str:
    return ", ".join([template] * (number // 2))


def _shortened(text: str) -> str:
    if len(text) <= _TEXT_LENGTH:
        return text
    return f"{text[: _TEXT_LENGTH // 2]} ... {text[-_TEXT_LENGTH // 2 :]}"
