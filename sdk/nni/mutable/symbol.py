"""Variables of expressions: leaves that take part in arithmetic."""

from typing import Any, SupportsIndex

from nni.mutable.base import LabeledMutable
from nni.mutable.expression import MutableExpression
from nni.mutable.record import ConstructorRecord


class MutableSymbol(ConstructorRecord, LabeledMutable, MutableExpression):
    """Base of leaves that are variables in expressions.

    It cannot be changed after construction, so copies are the object itself. `==` and the other
    comparisons build expressions; `equals` compares two symbols.

    Args:
        label: name of the dimension; `None`: the next number of the surrounding scope.

    Examples:
        >>> from nni.mutable import Numerical
        >>> width = Numerical(1, 4, quantize=1, label="width").int()
        >>> width, list((width * 16).grid(granularity=2))
        (int(width), [32, 48])
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return object.__reduce_ex__(self, protocol)

    def float(self) -> MutableExpression:
        """Return an expression of the value as a floating-point number.

        Returns:
            An expression.
        """
        converted = MutableExpression.to_float(self)
        assert isinstance(converted, MutableExpression)
        return converted

    def int(self) -> MutableExpression:
        """Return an expression of the value as an integer, by truncation.

        Returns:
            An expression.
        """
        converted = MutableExpression.to_int(self)
        assert isinstance(converted, MutableExpression)
        return converted
