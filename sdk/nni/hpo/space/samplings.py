"""Samplings: prior distributions that stand beside a type in `Annotated[...]`.

Each class but `Choice` is one `_type` of the search space, with the same arguments. `prior` is the
user prior, the key `_prior`: what the user expects of the best value. It is keyword-only.
"""

from dataclasses import dataclass, field, fields

from nni.hpo.json_value import JsonValue
from nni.hpo.space.user_priors import PRIOR_KEY

_PRIOR = "prior"
"""Field of a user prior; it takes no part in hashes, as it may be a dict."""


@dataclass(frozen=True, slots=True)
class Range:
    """Base class of the samplings of numbers.

    Examples:
        >>> from nni.hpo import LogUniform
        >>> rate = LogUniform(1e-5, 1, prior={"value": 1e-3, "confidence": "high"})
        >>> rate.entry()["_prior"]
        {'value': 0.001, 'confidence': 'high'}
    """

    prior: JsonValue = field(default=None, kw_only=True, repr=False, hash=False)
    """The value that is expected to be best, or a dict of `value` and `confidence`: `low`,
    `medium`, or `high`. None for no expectation."""

    def entry(self) -> dict[str, JsonValue]:
        """Return the range in the JSON form of search spaces.

        Returns:
            `{"_type": name of the sampling, "_value": its arguments}`, and `_prior` if there is
            one.
        """
        values = [getattr(self, one.name) for one in fields(self) if one.name != _PRIOR]
        return with_prior({"_type": type(self).__name__.lower(), "_value": values}, self.prior)

    def is_integral(self) -> bool:
        """Return whether all values are integers; False unless a subclass overrides this.

        Returns:
            False; a subclass of integers returns True.
        """
        return False


def with_prior(entry: dict[str, JsonValue], prior: JsonValue) -> dict[str, JsonValue]:
    """Return an entry of a search space with a user prior; as it is if the prior is None."""
    return entry if prior is None else {**entry, PRIOR_KEY: prior}


def _are_whole(*numbers: float) -> bool:
    return all(number == int(number) for number in numbers)


@dataclass(frozen=True, slots=True)
class RandInt(Range):
    """Uniform distribution over the integers of `[lower, upper)`.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import RandInt, search_space
        >>> def train(x: Annotated[int, RandInt(2, 9)]): ...
        >>> search_space(train)
        {'x': {'_type': 'randint', '_value': [2, 9]}}
    """

    lower: int
    """Smallest value."""
    upper: int
    """First integer above the largest value."""

    def is_integral(self) -> bool:
        """Return True: all values are integers."""
        return True


@dataclass(frozen=True, slots=True)
class Uniform(Range):
    """Uniform distribution over `[low, high]`.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import Uniform, search_space
        >>> def train(x: Annotated[float, Uniform(0, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'uniform', '_value': [0, 1]}}
    """

    low: float
    """Smallest value."""
    high: float
    """Largest value."""


@dataclass(frozen=True, slots=True)
class LogUniform(Range):
    """Log-uniform distribution over `[low, high]`; `low` is positive.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import LogUniform, search_space
        >>> def train(x: Annotated[float, LogUniform(1e-5, 0.1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'loguniform', '_value': [1e-05, 0.1]}}
    """

    low: float
    """Smallest value; above 0."""
    high: float
    """Largest value."""


@dataclass(frozen=True, slots=True)
class _QuantisedRange(Range):
    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    q: float
    """Step; values are its multiples, clipped to the bounds."""

    def is_integral(self) -> bool:
        """Return whether `low`, `high` and `q`, and so all values, are integers."""
        return _are_whole(self.low, self.high, self.q)


@dataclass(frozen=True, slots=True)
class QUniform(_QuantisedRange):
    """Uniform distribution over `[low, high]`, rounded to multiples of `q`.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import QUniform, search_space
        >>> def train(x: Annotated[int, QUniform(8, 64, 8)]): ...
        >>> search_space(train)
        {'x': {'_type': 'quniform', '_value': [8, 64, 8]}}
    """


@dataclass(frozen=True, slots=True)
class QLogUniform(_QuantisedRange):
    """Log-uniform distribution over `[low, high]`, rounded to multiples of `q`.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import QLogUniform, search_space
        >>> def train(x: Annotated[int, QLogUniform(1, 64, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'qloguniform', '_value': [1, 64, 1]}}
    """


@dataclass(frozen=True, slots=True)
class Normal(Range):
    """Normal distribution with mean `mu` and standard deviation `sigma`; unbounded.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import Normal, search_space
        >>> def train(x: Annotated[float, Normal(0, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'normal', '_value': [0, 1]}}
    """

    mu: float
    """Mean."""
    sigma: float
    """Standard deviation, above 0."""


@dataclass(frozen=True, slots=True)
class LogNormal(Range):
    """Log-normal distribution; `mu` and `sigma` are those of the logarithm.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import LogNormal, search_space
        >>> def train(x: Annotated[float, LogNormal(0, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'lognormal', '_value': [0, 1]}}
    """

    mu: float
    """Mean of the logarithm."""
    sigma: float
    """Standard deviation of the logarithm, above 0."""


@dataclass(frozen=True, slots=True)
class _QuantisedBell(Range):
    mu: float
    """Mean; of the logarithm, if it is a log-normal distribution."""
    sigma: float
    """Standard deviation, above 0; of the logarithm, if it is a log-normal distribution."""
    q: float
    """Step; values are its multiples."""

    def is_integral(self) -> bool:
        """Return whether `q`, and so all its multiples, are integers."""
        return _are_whole(self.q)


@dataclass(frozen=True, slots=True)
class QNormal(_QuantisedBell):
    """Normal distribution, rounded to multiples of `q`.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import QNormal, search_space
        >>> def train(x: Annotated[int, QNormal(50, 10, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'qnormal', '_value': [50, 10, 1]}}
    """


@dataclass(frozen=True, slots=True)
class QLogNormal(_QuantisedBell):
    """Log-normal distribution, rounded to multiples of `q`; may be 0.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import QLogNormal, search_space
        >>> def train(x: Annotated[int, QLogNormal(3, 1, 1)]): ...
        >>> search_space(train)
        {'x': {'_type': 'qlognormal', '_value': [3, 1, 1]}}
    """


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """Categorical distribution over options, each equally likely.

    Args:
        *options: JSON values, members of an enum, dataclasses or models (each a branch with
            parameters of its own). Without any, the values that the type itself names: those of a
            `Literal`, an `Enum`, `bool`, or the structures of a union.
        prior: dict of `value`, the option that is expected to be best, and `confidence`: `low`,
            `medium`, or `high`; or of `weights`, one for each option. None for no expectation.

    Examples:
        >>> from typing import Annotated
        >>> from nni.hpo import Choice, search_space
        >>> def train(x: Annotated[int, Choice(1, 2, 4)], fast: Annotated[bool, Choice()]): ...
        >>> for name, entry in search_space(train).items():
        ...     print(name, entry["_value"])
        x [1, 2, 4]
        fast [False, True]
    """

    options: tuple[object, ...]
    prior: JsonValue = field(default=None, repr=False, hash=False)

    def __init__(self, *options: object, prior: JsonValue = None) -> None:
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "prior", prior)
