"""Minimisation of a smooth function within bounds by a limited-memory quasi-Newton method.

Source: Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4 (two-loop recursion).

Departures: bounds are kept by projecting each step on the box; variables at a bound stay there
while the descent direction points outside. A step is shortened until it descends enough (Armijo),
and the number of evaluations is bounded, so that the cost is known beforehand.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats

Differentiable: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Returns value and gradient `(d,)` at a point `(d,)`; the value is infinite where undefined."""

_MEMORY: Final = 8
"""Pairs of steps and gradient changes that approximate the curvature."""
_SUFFICIENT: Final = 1e-4
"""Least descent of a step, relative to the linear prediction (Armijo condition)."""

_Pair: TypeAlias = tuple[Floats, Floats]


def minimise(
    function: Differentiable,
    start: Floats,
    low: Floats,
    high: Floats,
    *,
    evaluations: int,
    tolerance: float = 1e-6,
) -> tuple[Floats, float]:
    """Minimise a function within bounds by projected L-BFGS; return the best point and value.

    Args:
        function: to minimise.
        start: `(d,)`, put into the box if it lies outside.
        low: `(d,)`, lower bounds.
        high: `(d,)`, upper bounds.
        evaluations: of the function, at most; >= 1.
        tolerance: of the largest component of the projected gradient.
    """
    point = np.clip(start, low, high)
    value, gradient = function(point)
    pairs: deque[_Pair] = deque(maxlen=_MEMORY)
    left = evaluations - 1
    while left > 0:
        free = ~(((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0)))
        slope = np.where(free, gradient, 0.0)
        if not np.abs(slope).max(initial=0.0) > tolerance:
            break
        direction = _direction(slope, free, pairs)
        step = 1.0 if pairs else min(1.0, 0.2 / float(np.abs(slope).max()))
        found = False
        while left > 0 and not found:
            left -= 1
            trial = np.clip(point + step * direction, low, high)
            trial_value, trial_gradient = function(trial)
            descent = _SUFFICIENT * float(gradient @ (trial - point))
            found = trial_value <= value + min(descent, 0.0)
            step *= 0.4
        if not found:
            break
        change, turn = trial - point, trial_gradient - gradient
        if change @ turn > 1e-10 * float(turn @ turn):  # keeps the curvature positive
            pairs.append((change, turn))
        point, value, gradient = trial, trial_value, trial_gradient
    return point, value


def _direction(slope: Floats, free: Bools, pairs: deque[_Pair]) -> Floats:
    """Return the L-BFGS direction of descent within the free variables, else minus the slope."""
    if not pairs:
        return -slope
    direction = slope.copy()
    factors = []
    for change, turn in reversed(pairs):
        factor = float(change @ direction) / float(change @ turn)
        factors.append(factor)
        direction -= factor * turn
    change, turn = pairs[-1]
    direction *= float(change @ turn) / float(turn @ turn)
    for (change, turn), factor in zip(pairs, reversed(factors), strict=True):
        direction += (factor - float(turn @ direction) / float(change @ turn)) * change
    direction = np.where(free, -direction, 0.0)
    return direction if direction @ slope < 0 else -slope
