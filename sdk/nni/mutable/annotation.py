"""Mutables without a value: constraints on the values of others."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nni.mutable.base import LabeledMutable, Mutable, RandomState, Sample
from nni.mutable.errors import ConstraintViolation, SampleMissingError, SampleValidationError
from nni.mutable.expression import MutableExpression
from nni.mutable.record import ConstructorRecord


class MutableAnnotation(LabeledMutable):
    """Base of mutables that carry no value: frozen to `None`, and absent from samples.

    An implementation provides `check_contains`.

    Args:
        label: name of the annotation; `None`: the next number of the surrounding scope.

    Examples:
        >>> class Remark(MutableAnnotation):
        ...     def check_contains(self, sample):
        ...         return None
        >>> Remark("remark").random_sample(), Remark("remark").freeze({})
        ({}, None)
    """

    @abstractmethod
    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why the annotation rejects a sample, `None` if it accepts it."""

    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - samples have none
        """Return `None`: any value is accepted, and ignored."""
        return None

    def default_value(self) -> None:
        """Return `None`: an annotation has no value."""

    def random_value(self, random_state: RandomState) -> None:
        """Return `None`: an annotation has no value."""

    def grid_values(self, granularity: int) -> Iterator[None]:
        """Yield `None`: an annotation has no value."""
        yield None

    def value_in(self, sample: Sample) -> Any:  # noqa: ANN401 - samples have none
        """Return `None`: an annotation has no value."""
        return None

    def add_default(self, sample: Sample) -> None:
        """Leave the sample as it is."""

    def add_random(self, sample: Sample, random_state: RandomState) -> None:
        """Leave the sample as it is."""

    def add_each(self, sample: Sample, granularity: int) -> Iterator[None]:
        """Yield once, unless the sample is known to be rejected already."""
        error = self.check_contains(sample)
        if error is None or isinstance(error, SampleMissingError):
            yield


class Constraint(MutableAnnotation):
    """Base of annotations that reject samples.

    An implementation provides `check_contains`, which returns a `ConstraintViolation`.

    Args:
        label: name of the constraint; `None`: the next number of the surrounding scope.

    Examples:
        >>> from nni.mutable import Categorical, MutableList
        >>> class Even(Constraint):
        ...     def check_contains(self, sample):
        ...         odd = sum(sample.values()) % 2
        ...         return ConstraintViolation("the sum must be even") if odd else None
        >>> a, b = Categorical([1, 2], label="a"), Categorical([3, 4], label="b")
        >>> list(MutableList([a, b, Even("even")]).grid())
        [[1, 3, None], [2, 4, None]]
    """


class ExpressionConstraint(ConstructorRecord, Constraint):
    """Constraint that an expression is true.

    Args:
        expr: expression of symbols, such as `a + b == 5`.
        label: name of the constraint; `None`: the next number of the surrounding scope.

    Raises:
        TypeError: `expr` is no expression.

    Examples:
        >>> from nni.mutable import Categorical, MutableList
        >>> a, b = Categorical([1, 3], label="a"), Categorical([2, 4], label="b")
        >>> list(MutableList([a, b, ExpressionConstraint(a + b == 5, label="c")]).grid())
        [[1, 4, None], [3, 2, None]]
    """

    def __init__(self, expr: MutableExpression, *, label: str | None = None) -> None:
        if not isinstance(expr, MutableExpression):
            raise TypeError(f"expr must be an expression of symbols, got {expr!r}")
        self.expr = expr
        super().__init__(label)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable."""
        return {"expr": self.expr, "label": self.label}

    def leaf_mutables(self, is_leaf: Callable[[Mutable], bool]) -> Iterable[LabeledMutable]:
        """Yield the symbols of the expression, then the constraint."""
        yield from self.expr.leaf_mutables(is_leaf)
        yield self

    def check_contains(self, sample: Sample) -> SampleValidationError | None:
        """Return why a sample fails (missing label, false expression); None: it is true."""
        error = self.expr.check_contains(sample)
        if error is not None:
            return error.inside(self.label)
        if self.expr.freeze(sample):
            return None
        values = ", ".join(
            f"{label}={sample[label]!r}" for label in self.expr.simplify() if label in sample
        )
        return ConstraintViolation(f"the sample must satisfy {self.expr!r}, got {values}").inside(
            self.label
        )
