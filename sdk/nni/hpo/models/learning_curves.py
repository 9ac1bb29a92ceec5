"""Estimated final losses of trials that were stopped early.

A stopped trial shows how it compares at its last step: its intermediate result there has a quantile
among those of the completed trials at the same step. The estimate is the same quantile of their
final losses, by linear interpolation, so that intermediate and final results may be of different
metrics and scales. A trial behind all of them keeps its distance to the last one.

Estimates are conservative: none is better than the median of the completed trials, since the trial
was stopped for a reason; so a stopped trial is never the best one of a model.

Source: the idea that stopped trials teach by their rank at their step is that of Optuna's TPE,
which ranks them by step and intermediate value behind all completed trials
(https://optuna.readthedocs.io, `TPESampler`); the map by quantiles is that of Salinas, Shen and
Perrone, A Quantile-based Approach for Hyperparameter Transfer Learning, ICML 2020, section 4, there
between tasks, here between steps.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.json_value import JsonValue

_NEWEST: Final = 200
"""Completed trials whose results are kept."""
_EACH: Final = 20
"""Steps up to which every result is kept ..."""
_GROWTH: Final = 1.1
"""... and the factor between kept steps beyond."""

Losses = Sequence[float | None]
"""Losses of the intermediate results of a trial, oldest first; None without a finite number."""


class LearningCurves:
    """Intermediate and final losses of completed trials, and the estimate that follows from them.

    A host may build it again by the same calls in the same order.
    """

    def __init__(self) -> None:
        self._finals: dict[int, float] = {}
        """Final losses of trials whose end is not known yet, by parameter id."""
        self._completed: deque[tuple[list[float | None], float]] = deque(maxlen=_NEWEST)
        """Losses at the kept steps, and the final loss."""

    def finish(self, parameter_id: int, loss: float) -> None:
        """Record the final loss of a trial, before `end`."""
        self._finals[parameter_id] = loss

    def end(self, parameter_id: int, losses: Losses) -> None:
        """Forget an ended trial; keep its curve for comparison if it had a final loss.

        Args:
            parameter_id: of the trial.
            losses: of its intermediate results, oldest first.
        """
        final = self._finals.pop(parameter_id, None)
        if final is not None:
            self.complete(losses, final)

    def complete(self, losses: Losses, final: float) -> None:
        """Keep a completed trial's curve and final loss among the newest 200; skip empty curves.

        Args:
            losses: of its intermediate results, oldest first.
            final: its final loss.
        """
        if losses:
            self._completed.append((_thinned(losses), final))

    def estimate(self, losses: Losses) -> float | None:
        """Return a stopped trial's estimated final loss; the worst known if none compares, or None.

        Args:
            losses: of its intermediate results, oldest first. A last one without a number is worse
                than all others.
        """
        kept = _thinned(losses)
        if not kept:
            return None
        place = len(kept) - 1
        pairs = [
            (loss, final)
            for curve, final in self._completed
            if place < len(curve) and (loss := curve[place]) is not None
        ]
        if not pairs:
            return max((final for _, final in self._completed), default=None)
        shown = kept[place]
        values, finals = np.array(pairs).T
        return estimated_final(math.inf if shown is None else shown, values, finals)

    def state(self) -> JsonValue:
        """Return final losses of open trials and curves of completed ones as JSON."""
        return [list(self._finals.items()), list(self._completed)]

    def load_state(self, state: JsonValue) -> None:
        """Restore final losses and completed curves from a state."""
        finals, completed = state
        self._finals = dict(finals)
        self._completed = deque(((list(curve), final) for curve, final in completed), _NEWEST)


def estimated_final(shown: float, values: Floats, finals: Floats) -> float:
    """Return a stopped trial's final loss by quantiles of completed ones, at least their median.

    Args:
        shown: its loss at its last step; infinite if it had none.
        values: `(n,)`, n >= 1, losses of the completed trials at the same step.
        finals: `(n,)`, their final losses.
    """
    values, finals = np.sort(values), np.sort(finals)
    with np.errstate(over="ignore", invalid="ignore"):  # of the greatest floats
        estimate = float(np.interp(shown, values, finals))
        if values[-1] < shown < math.inf:
            estimate += _unit(values, finals) * (shown - float(values[-1]))
        # Clipped, as the mean of two of the greatest floats is infinite.
        middle = float(np.clip(np.median(finals), finals[0], finals[-1]))
    return max(middle, estimate) if math.isfinite(estimate) else float(finals[-1])


def _unit(values: Floats, finals: Floats) -> float:
    """Return how much one unit of a loss at a step is in final losses, at most 1."""
    spread, final_spread = float(np.ptp(values)), float(np.ptp(finals))
    return min(1.0, final_spread / spread) if spread > 0 and final_spread > 0 else 1.0


def _thinned(losses: Losses) -> list[float | None]:
    """Return the losses at the kept steps, which are the same for all trials."""
    return [losses[step - 1] for step in _kept_steps(len(losses))]


def _kept_steps(count: int) -> Iterator[int]:
    """Yield the steps kept up to `count`, from 1: all early ones, then at growing distances."""
    step = 1
    while step <= count:
        yield step
        step = step + 1 if step < _EACH else int(step * _GROWTH) + 1


def plain_losses(losses: Iterable[object]) -> list[float | None]:
    """Return losses of one objective, None for non-floats; an empty list if any is a tuple."""
    found = list(losses)
    if any(isinstance(loss, tuple) for loss in found):
        return []
    return [loss if isinstance(loss, float) else None for loss in found]
