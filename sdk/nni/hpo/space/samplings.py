"""How a typed hyperparameter varies: what stands beside its type in `Annotated[...]`.

Each class but `Choice` is one `_type` of the search space, with the same arguments.
"""

from dataclasses import astuple, dataclass

from nni.hpo.json_value import JsonValue


@dataclass(frozen=True, slots=True)
class Range:
    """Base of everything that gives numbers."""

    def entry(self) -> dict[str, JsonValue]:
        """Return its form in a search space."""
        return {"_type": type(self).__name__.lower(), "_value": list(astuple(self))}

    def is_integral(self) -> bool:
        """Whether all its values are whole numbers."""
        return False


def _are_whole(*numbers: float) -> bool:
    return all(number == int(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class RandInt(Range):
    """Integers of `[lower, upper)`, each equally likely."""

    lower: int
    upper: int

    def is_integral(self) -> bool:
        """See the base."""
        return True


@dataclass(frozen=True, slots=True)
class Uniform(Range):
    """Numbers from `low` to `high`, each equally likely."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LogUniform(Range):
    """Numbers from `low` to `high` whose logarithm is uniform; `low` is positive."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _QuantisedRange(Range):
    low: float
    high: float
    q: float
    """Values are multiples of it, and the bounds."""

    def is_integral(self) -> bool:
        """See the base."""
        return _are_whole(self.low, self.high, self.q)


@dataclass(frozen=True, slots=True)
class QUniform(_QuantisedRange):
    """Multiples of `q` from `low` to `high`; on an `int`, whole numbers in order."""


@dataclass(frozen=True, slots=True)
class QLogUniform(_QuantisedRange):
    """Like `LogUniform`, rounded to multiples of `q`."""


@dataclass(frozen=True, slots=True)
class Normal(Range):
    """Numbers around `mu` with the standard deviation `sigma`; unbounded."""

    mu: float
    sigma: float


@dataclass(frozen=True, slots=True)
class LogNormal(Range):
    """Positive numbers whose logarithm is normal; `mu` and `sigma` are those of the logarithm."""

    mu: float
    sigma: float


@dataclass(frozen=True, slots=True)
class _QuantisedBell(Range):
    mu: float
    sigma: float
    q: float
    """Values are multiples of it."""

    def is_integral(self) -> bool:
        """See the base."""
        return _are_whole(self.q)


@dataclass(frozen=True, slots=True)
class QNormal(_QuantisedBell):
    """Like `Normal`, rounded to multiples of `q`."""


@dataclass(frozen=True, slots=True)
class QLogNormal(_QuantisedBell):
    """Like `LogNormal`, rounded to multiples of `q`; may be 0."""


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """One of several options.

    Args:
        *options: JSON values, members of an enum, dataclasses or models (each a branch with
            parameters of its own). Without any, the values that the type itself names: those of a
            `Literal`, an `Enum`, `bool`, or the structures of a union.
    """

    options: tuple[object, ...]

    def __init__(self, *options: object) -> None:
        object.__setattr__(self, "options", options)
