"""Matern correlation functions of any smoothness.

Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 4.14-4.17.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

_TINY: Final = 1e-12
_FAR: Final = 60.0
"""Scaled distance beyond which every correlation is below 1e-20."""
_TABLE_SIZE: Final = 4000


@dataclass(frozen=True, slots=True)
class Matern:
    """Matérn correlation as a function of distance, with its derivative, for any smoothness.

    1/2, 3/2 and 5/2 have closed forms; all other values of `nu` are read from a table.
    """

    nu: float
    _table: tuple[Floats, Floats, Floats] | None
    """Square roots of scaled distances, correlation and steepness there; None for a closed form."""

    @classmethod
    def of(cls, nu: float) -> "Matern":
        """Return the correlation of smoothness `nu` (inf: squared exponential); raise unless > 0.

        Raises:
            ValueError: `nu` is not positive.
        """
        if not nu > 0:
            raise ValueError(f"nu must be > 0, got {nu!r}")
        closed = nu in {0.5, 1.5, 2.5} or nu > 30  # noqa: PLR2004 - closer to the limit than 1 %
        return cls(float(nu), None if closed else _tabulate(float(nu)))

    def correlation(self, squared: Floats) -> tuple[Floats, Floats]:
        """Return the correlation `k` and the steepness `-k'(r) / r` at squared distances.

        Args:
            squared: squares of distances `r`, of any shape, >= 0.
        """
        if self.nu > 30 and self._table is None:  # noqa: PLR2004 - see `of`
            value = np.exp(-0.5 * squared)
            return value, value
        r = np.sqrt(np.maximum(squared, _TINY))
        if self._table is not None:
            roots, values, slopes = self._table
            at = np.sqrt(np.sqrt(2.0 * self.nu) * r)
            return np.interp(at, roots, values), np.interp(at, roots, slopes)
        if self.nu == 0.5:  # noqa: PLR2004 - a closed form
            value = np.exp(-r)
            return value, value / r
        root = math.sqrt(2.0 * self.nu)
        decay = np.exp(-root * r)
        if self.nu == 1.5:  # noqa: PLR2004 - a closed form
            return (1.0 + root * r) * decay, 3.0 * decay
        growth = 1.0 + root * r
        return (growth + (5.0 / 3.0) * squared) * decay, (5.0 / 3.0) * growth * decay


def _tabulate(nu: float) -> tuple[Floats, Floats, Floats]:
    """Return a table of square roots of z = sqrt(2 nu) r, with correlation and steepness at z."""
    roots = np.linspace(1e-3, math.sqrt(_FAR), _TABLE_SIZE)
    z = roots**2
    scale = (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
    values = np.exp(scale + nu * np.log(z) + _log_bessel_k(nu, z))
    # d/dz [z^nu K_nu(z)] = -z^nu K_{nu-1}(z); with z = c r, -k'(r)/r = c^2 z^(nu-1) K_{nu-1}(z).
    slopes = 2.0 * nu * np.exp(scale + (nu - 1.0) * np.log(z) + _log_bessel_k(abs(nu - 1.0), z))
    return roots, np.minimum(values, 1.0), slopes


def _log_bessel_k(order: float, z: Floats) -> Floats:
    """Return log K_order(z), from its integral over exp(-z cosh t) cosh(order t), by trapezoids.

    The integrand falls doubly exponentially, so equal steps are accurate to rounding.
    """
    step = 0.05
    total = np.full(len(z), -np.inf)
    for t in np.arange(0.0, 18.0, step):
        ends = math.log(0.5) if t == 0 else 0.0
        growth = order * t + math.log1p(math.exp(-2.0 * order * t)) - math.log(2.0)
        total = np.logaddexp(total, -z * math.cosh(t) + growth + ends)
    log_integral: Floats = total + math.log(step)
    return log_integral
