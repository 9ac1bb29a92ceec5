"""Choice of a number from an interval or a distribution."""

import math
import numbers
from collections.abc import Iterator
from importlib import import_module
from statistics import NormalDist
from typing import Any, Final, Protocol, Self

from nni.mutable.base import RandomState
from nni.mutable.symbol import MutableSymbol

_QUANTUM_TOLERANCE: Final = 1e-6
"""Largest distance of a value from a multiple, as a fraction of the quantum."""
_SCIPY: Final = ("name", "args", "kwds")
"""What names a frozen distribution of scipy."""
_SMALLEST: Final = 2.0**-54
"""Half of the smallest step of a random number: stands for 0, whose quantile is infinite."""


class Distribution(Protocol):
    """Interface of a continuous distribution: `cdf` and `ppf`, such as a frozen one of scipy."""

    def cdf(self, x: float, /) -> float:
        """Return the probability of values up to this one."""
        ...

    def ppf(self, q: float, /) -> float:
        """Return the quantile of a probability."""
        ...


class Numerical(MutableSymbol):
    """Leaf whose value is a number: uniform in bounds, normal, or of a distribution of scipy.

    Args:
        low: lower bound, inclusive.
        high: upper bound, inclusive. A normal or given distribution is cut off at the bounds.
        mu: mean of a normal distribution.
        sigma: its standard deviation, > 0.
        log_distributed: whether the logarithm of the number is uniform or normal.
        quantize: the number is rounded to a multiple of this, then clipped to the bounds.
        distribution: a frozen distribution of scipy, or anything with its `cdf` and `ppf`.
        default: a number within the rules; by default the median.
        label: name of the dimension; `None`: the next number of the surrounding scope.

    Raises:
        ValueError: an argument breaks its rule, or the arguments name no distribution.

    Examples:
        >>> list(Numerical(0, 1, label="rate").grid(granularity=2))
        [0.25, 0.5, 0.75]
        >>> Numerical(0.25, 4, log_distributed=True, label="decay").default()
        1.0
        >>> list(Numerical(mu=0, sigma=1, quantize=0.5, label="shift").grid(granularity=3))
        [-1.0, -0.5, 0.0, 0.5, 1.0]
    """

    def __init__(  # noqa: PLR0913 - the arguments of the specification
        self,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        mu: float | None = None,
        sigma: float | None = None,
        log_distributed: bool = False,
        quantize: float | None = None,
        distribution: Distribution | None = None,
        default: float | None = None,
        label: str | None = None,
    ) -> None:
        self.low, self.high = float(low), float(high)
        self.mu, self.sigma = mu, sigma
        self.log_distributed = log_distributed
        self.quantize = quantize
        self.distribution = distribution
        self._check_arguments()
        rule = None if default is None else self.check_value(default)
        if rule is not None:
            raise ValueError(f"default must be {rule}, got {default!r}")
        self._default = default
        super().__init__(label)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return keyword arguments that construct an equal mutable, without those at defaults."""
        arguments = {
            "low": None if self.low == -math.inf else self.low,
            "high": None if self.high == math.inf else self.high,
            "mu": self.mu,
            "sigma": self.sigma,
            "log_distributed": self.log_distributed or None,
            "quantize": self.quantize,
            "distribution": self.distribution,
            "default": self._default,
            "label": self.label,
        }
        return {name: value for name, value in arguments.items() if value is not None}

    def equals(self, other: object) -> bool:
        """Return whether another number has equal arguments; distributions by their parameters."""
        if not isinstance(other, Numerical) or type(other) is not type(self):
            return False
        mine, theirs = self.constructor_arguments(), other.constructor_arguments()
        return _parameters(mine.pop("distribution", None)) == _parameters(
            theirs.pop("distribution", None)
        ) and (mine == theirs)

    def _dump(self) -> dict[str, Any]:
        """Return what `nni.dump` writes: of a distribution of scipy, its name and parameters."""
        dumped = super()._dump()
        parameters = _parameters(self.distribution)
        if isinstance(parameters, tuple):
            dumped["distribution"] = dict(zip(_SCIPY, parameters, strict=True))
        return dumped

    @classmethod
    def _load(cls, **arguments: Any) -> Self:  # noqa: ANN401 - those of the constructor
        """Return the number whose `_dump` has been read."""
        named = arguments.get("distribution")
        if isinstance(named, dict) and named.keys() == set(_SCIPY):
            family = getattr(import_module("scipy.stats"), named["name"])
            arguments["distribution"] = family(*named["args"], **named["kwds"])
        return super()._load(**arguments)

    def check_value(self, value: Any) -> str | None:  # noqa: ANN401 - it is to be checked
        """Return the rule that the value breaks: number, bounds or multiple; else None."""
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return "a number"
        number = float(value)
        if not self.low <= number <= self.high:
            return f"in [{self.low}, {self.high}]"
        if (
            self.quantize is not None
            and abs(number - self._rounded(number)) > _QUANTUM_TOLERANCE * self.quantize
        ):
            return f"a multiple of {self.quantize}, or a bound"
        return None

    def default_value(self) -> float:
        """Return the default, by default the median."""
        return self.quantile(0.5) if self._default is None else self._default

    def random_value(self, random_state: RandomState) -> float:
        """Return the quantile of a random probability."""
        return self.quantile(random_state.random())

    def grid_values(self, granularity: int) -> Iterator[float]:
        """Yield the quantiles of all multiples of `2 ** -granularity`, ascending."""
        parts = 2**granularity
        last = None
        for at in range(1, parts):
            value = self.quantile(at / parts)
            if value != last:
                yield value
            last = value

    def quantile(self, probability: float) -> float:
        """Return the number below which a sample lies with this probability.

        Args:
            probability: in `[0, 1)`.

        Returns:
            The number, rounded to a multiple and within the bounds.
        """
        value = self._continuous_quantile(max(probability, _SMALLEST))
        return self._rounded(min(max(value, self.low), self.high))

    def _continuous_quantile(self, probability: float) -> float:
        if self.distribution is not None:
            return _truncated(self.distribution, self.low, self.high, probability)
        low, high = self.low, self.high
        if self.log_distributed:
            low, high = (math.log(bound) if bound > 0 else -math.inf for bound in (low, high))
        if self.mu is not None and self.sigma is not None:
            value = _truncated(_Normal(self.mu, self.sigma), low, high, probability)
        else:
            value = low + probability * (high - low)
        return math.exp(value) if self.log_distributed else value

    def _rounded(self, value: float) -> float:
        if self.quantize is None:
            return value
        multiple = float(round(value / self.quantize) * self.quantize)
        return min(max(multiple, self.low), self.high)

    def _check_arguments(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must be less than high, got {self.low} and {self.high}")
        if (self.mu is None) != (self.sigma is None):
            raise ValueError(f"mu and sigma go together, got {self.mu} and {self.sigma}")
        if self.sigma is not None and not 0 < self.sigma < math.inf:
            raise ValueError(f"sigma must be > 0, got {self.sigma}")
        if self.quantize is not None and not 0 < self.quantize < math.inf:
            raise ValueError(f"quantize must be > 0, got {self.quantize}")
        if self.distribution is not None:
            self._check_distribution()
        elif self.mu is None and not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError(
                f"low and high must be finite, or mu and sigma or distribution be given, got "
                f"{self.low} and {self.high}"
            )
        if self.log_distributed and self.mu is None and self.low <= 0:
            raise ValueError(f"low must be > 0 on a logarithmic scale, got {self.low}")

    def _check_distribution(self) -> None:
        if self.mu is not None or self.log_distributed:
            raise ValueError("distribution excludes mu, sigma and log_distributed, got both")
        for method in ("cdf", "ppf"):
            if not callable(getattr(self.distribution, method, None)):
                raise ValueError(  # noqa: TRY004 - as all arguments here
                    f"distribution must have cdf and ppf, as scipy.stats.norm() does, "
                    f"got {self.distribution!r}"
                )


class _Normal:
    """Normal distribution with the names of scipy."""

    def __init__(self, mu: float, sigma: float) -> None:
        self._normal = NormalDist(mu, sigma)

    def cdf(self, value: float, /) -> float:
        return self._normal.cdf(value)

    def ppf(self, probability: float, /) -> float:
        if not 0 < probability < 1:
            return math.inf if probability >= 1 else -math.inf
        return self._normal.inv_cdf(probability)


def _truncated(distribution: Distribution, low: float, high: float, probability: float) -> float:
    """Return a quantile of the distribution that is cut off at two bounds."""
    below = 0.0 if low == -math.inf else float(distribution.cdf(low))
    above = 1.0 if high == math.inf else float(distribution.cdf(high))
    return float(distribution.ppf(below + probability * (above - below)))


def _parameters(distribution: Any) -> object:  # noqa: ANN401 - of scipy, or the user's
    """Return the definition of a distribution: name and parameters if scipy has it."""
    kind = getattr(getattr(distribution, "dist", None), "name", None)
    return distribution if kind is None else (kind, distribution.args, distribution.kwds)
