"""Families of growing curves, with starting values for their fit.

x counts the values of a curve from 1; y is scaled so that its largest magnitude is 1. A first guess
follows from the data: exactly for the families that are linear in their parameters, roughly from
first, half-way and last value for the others.

Source: Domhan, Springenberg and Hutter, Speeding up Automatic Hyperparameter Optimization of Deep
Neural Networks by Extrapolation of Learning Curves, IJCAI 2015, table 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats

Curve = Callable[..., Floats]
Guess = Callable[[Floats, Floats], Floats]

_ABOVE = 1.1
"""Guess of the limit of a growing curve, relative to its largest value so far."""

_CUSP = 0.5
"""Typical exponent of a power law."""


@dataclass(frozen=True, slots=True)
class Family:
    """Parametric family of learning curves: formula, and a first guess of its parameters."""

    name: str
    curve: Curve
    """`curve(x, *theta)`: `(n,)` values at `(n,)` points; NaN where the formula has none."""
    guess: Guess
    """`guess(x, y)`: a first theta for data."""


def _linear(target: Floats, *columns: Floats) -> Floats:
    """Return the least-squares coefficients of `target` on `columns`."""
    solution = np.linalg.lstsq(np.column_stack(columns), target, rcond=None)[0]
    return np.asarray(solution, dtype=np.float64)


def _half_way(x: Floats, y: Floats) -> float:
    """Return the first point at which a curve has covered half of its rise."""
    middle = (y[0] + y.max()) / 2
    return float(x[int(np.argmax(y >= middle))])


def _limit(y: Floats) -> float:
    """Return a guess of the limit of a curve, above all its values."""
    top = float(y.max())
    return top + (_ABOVE - 1.0) * max(abs(top), float(np.ptp(y)))


def _vapor_pressure(x: Floats, a: float, b: float, c: float) -> Floats:
    values: Floats = np.exp(a + b / x + c * np.log(x))
    return values


def _guess_vapor_pressure(x: Floats, y: Floats) -> Floats:
    return _linear(np.log(y), np.ones_like(x), 1.0 / x, np.log(x))


def _pow3(x: Floats, c: float, a: float, alpha: float) -> Floats:
    values: Floats = c - a * x**-alpha
    return values


def _guess_pow3(x: Floats, y: Floats) -> Floats:
    return np.array([*_linear(y, np.ones_like(x), -(x**-_CUSP)), _CUSP])


def _log_log_linear(x: Floats, a: float, b: float) -> Floats:
    values: Floats = np.log(a * np.log(x) + b)
    return values


def _guess_log_log_linear(x: Floats, y: Floats) -> Floats:
    return _linear(np.exp(y), np.log(x), np.ones_like(x))


def _log_linear(x: Floats, a: float, b: float) -> Floats:
    values: Floats = a * np.log(x) + b
    return values


def _guess_log_linear(x: Floats, y: Floats) -> Floats:
    return _linear(y, np.log(x), np.ones_like(x))


def _hill3(x: Floats, top: float, eta: float, kappa: float) -> Floats:
    values: Floats = top * x**eta / (kappa**eta + x**eta)
    return values


def _guess_hill3(x: Floats, y: Floats) -> Floats:
    return np.array([_limit(y), 1.0, _half_way(x, y)])


def _log_power(x: Floats, a: float, b: float, c: float) -> Floats:
    values: Floats = a / (1.0 + (x / np.exp(b)) ** c)
    return values


def _guess_log_power(x: Floats, y: Floats) -> Floats:
    return np.array([_limit(y), np.log(_half_way(x, y)), -1.0])


def _pow4(x: Floats, c: float, a: float, b: float, alpha: float) -> Floats:
    values: Floats = c - (a * x + b) ** -alpha
    return values


def _guess_pow4(x: Floats, y: Floats) -> Floats:
    limit = _limit(y)
    start, end = ((limit - value) ** (-1.0 / _CUSP) for value in (y[0], y.max()))
    slope = max((end - start) / max(x[-1] - x[0], 1.0), 1e-3)
    return np.array([limit, slope, start - slope * x[0], _CUSP])


def _mmf(x: Floats, alpha: float, beta: float, kappa: float, delta: float) -> Floats:
    values: Floats = alpha - (alpha - beta) / (1.0 + (kappa * x) ** delta)
    return values


def _guess_sigmoid(x: Floats, y: Floats) -> Floats:
    return np.array([_limit(y), y[0], 1.0 / _half_way(x, y), 1.0])


def _exp4(x: Floats, c: float, a: float, alpha: float, b: float) -> Floats:
    values: Floats = c - np.exp(-a * x**alpha + b)
    return values


def _guess_exp4(x: Floats, y: Floats) -> Floats:
    limit = _limit(y)
    slope, offset = _linear(np.log(limit - y), -x, np.ones_like(x))
    return np.array([limit, slope, 1.0, offset])


def _ilog2(x: Floats, c: float, a: float) -> Floats:
    values: Floats = c - a / np.log(x + 1.0)
    return values


def _guess_ilog2(x: Floats, y: Floats) -> Floats:
    return _linear(y, np.ones_like(x), -1.0 / np.log(x + 1.0))


def _weibull(x: Floats, alpha: float, beta: float, kappa: float, delta: float) -> Floats:
    values: Floats = alpha - (alpha - beta) * np.exp(-((kappa * x) ** delta))
    return values


def _janoschek(x: Floats, alpha: float, beta: float, kappa: float, delta: float) -> Floats:
    values: Floats = alpha - (alpha - beta) * np.exp(-kappa * x**delta)
    return values


FAMILIES: Final = (
    Family("vapor_pressure", _vapor_pressure, _guess_vapor_pressure),
    Family("pow3", _pow3, _guess_pow3),
    Family("log_log_linear", _log_log_linear, _guess_log_log_linear),
    Family("log_linear", _log_linear, _guess_log_linear),
    Family("hill3", _hill3, _guess_hill3),
    Family("log_power", _log_power, _guess_log_power),
    Family("pow4", _pow4, _guess_pow4),
    Family("mmf", _mmf, _guess_sigmoid),
    Family("exp4", _exp4, _guess_exp4),
    Family("ilog2", _ilog2, _guess_ilog2),
    Family("weibull", _weibull, _guess_sigmoid),
    Family("janoschek", _janoschek, _guess_sigmoid),
)
