"""Errors of mutables.

```
ValueError
└── SampleValidationError       a sample is none of the mutable's choices
    ├── SampleMissingError      it has no value for a label
    └── ConstraintViolation     its values break a constraint
TypeError
└── LegacyFormatError           a mutable has no form in the search spaces of tuners
RuntimeError
└── UndecidedError              an expression is used as a value before a sample is there
```
"""

from collections.abc import Iterable
from typing import Self


class SampleValidationError(ValueError):
    """Error of a sample that is not contained in a mutable; has the path to the leaf.

    Args:
        message: the rule that the sample breaks, and its value.
        paths: names of the mutables from the leaf that found the error to the root.

    Examples:
        >>> from nni.mutable import Categorical, MutableDict
        >>> space = MutableDict({"width": Categorical([16, 32], label="w")})
        >>> error = space.check_contains({"w": 8})
        >>> error.paths
        ['w', 'width']
        >>> print(error)
        the value of 'w' must be one of [16, 32], got 8 (in width -> w)
    """

    def __init__(self, message: str, paths: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.paths = list(paths)

    def inside(self, path: str) -> Self:
        """Append the name of a part to the error's path, leaf first; return the same error.

        Args:
            path: name of the part in the mutable that contains it.

        Returns:
            This error.
        """
        self.paths.append(path)
        return self

    def __str__(self) -> str:
        if not self.paths:
            return self.message
        return f"{self.message} (in {' -> '.join(reversed(self.paths))})"


class SampleMissingError(SampleValidationError):
    """Error of a sample that has no value for a label.

    Examples:
        >>> from nni.mutable import Categorical
        >>> print(Categorical([16, 32], label="w").check_contains({"depth": 3}))
        the sample has no value for label 'w'; its labels are ['depth'] (in w)
    """

    @classmethod
    def of(cls, label: str, labels: Iterable[str]) -> Self:
        """Return the error of a missing label, which shows twenty labels of the sample at most.

        Args:
            label: the label that has no value.
            labels: the labels that the sample has.

        Returns:
            An error that names them; of the labels of the sample, the first twenty.
        """
        known = list(labels)
        shown = f"{known[:20]}" + (f" and {len(known) - 20} more" if len(known) > 20 else "")  # noqa: PLR2004 - as many as fit in a line or two
        return cls(f"the sample has no value for label {label!r}; its labels are {shown}")


class ConstraintViolation(SampleValidationError):
    """Error: the values of a sample break a constraint.

    Examples:
        >>> from nni.mutable import Categorical, ExpressionConstraint
        >>> depth = Categorical([1, 2], label="depth")
        >>> rule = ExpressionConstraint(depth < 2, label="shallow")
        >>> print(rule.check_contains({"depth": 2}))
        the sample must satisfy (depth < 2), got depth=2 (in shallow)
    """


class LegacyFormatError(TypeError):
    """Error: a mutable has no form in the search spaces of hyperparameter tuning.

    Examples:
        >>> from nni.mutable import Numerical
        >>> try:
        ...     Numerical(0, 1, label="rate").as_legacy_dict()
        ... except LegacyFormatError as error:
        ...     print(error)
        Numerical(low=0.0, high=1.0, label='rate') has no legacy form; only a Categorical has
    """


class UndecidedError(RuntimeError):
    """Error of an expression that is used as a bool or a number before a sample is there.

    Examples:
        >>> import nni
        >>> bool(nni.choice("width", [4, 8]) > 4)
        Traceback (most recent call last):
        nni.mutable.errors.UndecidedError: an expression has no value before a sample is there, ...
    """
