"""Model of one level of a space: Parzen estimators of good rows and of the rest.

The numbers below were chosen with 100 trials and 8 to 20 seeds on problems of 2 to 15 parameters,
continuous, multimodal, noisy, mixed, discrete and nested: the offline suite, and those of
`tests/benchmarks/bench_tpe_quality.py`. Changing one of them by a quarter costs less than the
spread between seeds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.encoding.columns import BELL_WIDTH, Level, Row
from nni.hpo.models.feasible_rows import RowFeasibility
from nni.hpo.models.parzen import Frame, Mixture, neighbour_gaps
from nni.hpo.models.prior_density import prior_exponent
from nni.hpo.tuners.density.fronts import FrontRanking
from nni.hpo.tuners.density.level_prior import level_prior
from nni.hpo.tuners.density.observations import Observations, row_key
from nni.hpo.tuners.density.rankings import LossRanking, Outcome

GOOD_FACTOR: Final = 0.45
"""The good set holds `ceil(GOOD_FACTOR * sqrt(n))` of n rows ..."""

GOOD_LIMIT: Final = 25
"""... and never more than this."""

REST_LIMIT: Final = 400
"""Limit of the rest's rows with a kernel of their own; the prior represents the others."""

CANDIDATES: Final = 32
"""Draws of the good density that compete in one proposal."""

CROSSED_CANDIDATES: Final = 24
"""Candidates that mix the good kernels, column by column, while other trials run: concurrent
proposals have the same parents, and go farther from them by combining several."""

CROSSED_COLUMNS: Final = 4
"""... if a row has at least so many columns: on two, with few new mixtures, mixing was worse."""

CROSSED_NARROWING: Final = 0.7
"""Factor of the kernels' widths then: mixing spreads the draws already."""

FLOOR_FACTOR: Final = 2.0
"""A good kernel is at least `FLOOR_FACTOR / n` wide, within the next two bounds: wide steps while
little is known, so that a proposal can leave a local minimum, fine ones later."""

FLOOR_LEAST: Final = 0.01
FLOOR_MOST: Final = 0.25

PENDING_SCALE: Final = 30.0
"""Scale of pending trials: with p of them that have a made-up result the floor grows by `sqrt(1 + p
/ PENDING_SCALE)`: many proposals that come from the same results have to spread."""

RUNNING_WEIGHT: Final = 0.3
"""Weight in the rest of a running trial without a made-up result, where 1 is that of a result:
proposals keep away from it. Between 0.1 and 1, ten trials at a time, it made no difference; without
it regrets of 55 problems were a third larger, most of all where there are plateaus."""

LIED_THINNING: Final = 2
"""Interval of candidates that compete where made-up results take part, if there are infinitely
many: the fewer there are, the less alike are the winners of many asks that know the same
results."""

JOINT_LIE_WEIGHT: Final = 1.0
"""Weight of all running trials together that count as good, where 1 is that of a good result."""

REST_FACTOR: Final = 3.0
REST_POWER: Final = 0.7
"""A kernel of the rest on d numeric columns is `REST_FACTOR / d**REST_POWER` floors wide. The ratio
of the densities at a tried point goes with the d-th power of the ratio of the widths; without the
power, tried points would push too little in few dimensions or much too far in many."""

REST_MOST: Final = 0.1

SLIP_FACTOR: Final = 0.5
"""Factor of the probability that a kernel ignores its own option, `f * c / (k + 1 + f * c)` with c
options and k kernels."""

BRANCH_SLIP_FACTOR: Final = 6.0
"""... and the same for a choice that opens branches: early results of
a branch, from few trials, say little about its best configurations."""

PRIOR_STRENGTH: Final = 3.0
"""Results after which the user priors have the exponent 1. The ratio of the densities varies less
than an expected improvement does: with 10, a wrong prior was hardly forgotten after 60 trials."""

PRIOR_INTERVAL: Final = 4
"""Interval of candidates that are drawn from the user priors, if there are any."""

FEASIBLE_FACTOR: Final = 3
"""Factor of the candidates once trials have failed, as many of them lie where trials fail."""

SAFE: Final = 0.75
"""Share of the greatest probability of success from which a candidate is safe enough: less than
for an acquisition that looks for the very border."""

LONELY_WIDTH: Final = 0.3
"""Width of a single good kernel, which has no neighbour."""

GOOD_STEP: Final = 0.5
REST_STEP: Final = 0.4
"""Least widths on a stepped column, in steps: a kernel's density on its own value is then about
what its whole mass, spread over one step, would be."""

TRIED_PENALTY: Final = 1e6
"""Subtracted from the log ratio of a tried configuration of a finite level: it is chosen again
only if all candidates have been tried."""


Allowed: TypeAlias = Callable[[Row], bool]

LEAST_STEP: Final = 1e-6
"""A column with finer steps counts as continuous, since it has too many values to try all."""


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """Settings of the two densities; the defaults are the constants above."""

    good_factor: float = GOOD_FACTOR
    """The good set holds `ceil(good_factor * sqrt(n))` of n rows, > 0 ..."""
    good_limit: int = GOOD_LIMIT
    """... and never more than this, >= 1."""
    candidates: int = CANDIDATES
    """Draws of the good density that compete in one proposal, >= 1."""
    prior_weight: float = 1.0
    """Weight of the prior in both densities, > 0, where 1 is that of a result."""
    newest: int | None = None
    """Number of newest results that keep their weight, >= 1; the weight of older ones rises
    linearly with their order, from `1 / n` to 1. None: all keep their weight."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Running trials on one level, with their made-up result."""

    rows: Sequence[Row]
    """Rows of the trials."""
    lie: Outcome | None
    """Made-up result of all of them; None for none: they only keep proposals away."""


class LevelModel:
    """Parzen estimators over the rows of one level: of the good rows and of the rest.

    Args:
        level: whose rows are proposed.
        objectives: number of losses of a result, >= 1.
        settings: of the densities.
    """

    def __init__(
        self, level: Level, objectives: int = 1, settings: DensitySettings | None = None
    ) -> None:
        self.level = level
        self._settings = settings or DensitySettings()
        self._frame = Frame(
            bounded=np.array([column.bounded for column in level.numeric], dtype=bool),
            bell_width=BELL_WIDTH,
            counts=np.array([len(c.domain.options) for c in level.choices], dtype=np.int64),
        )
        self._widest = np.where(self._frame.bounded, 1.0, BELL_WIDTH)
        self._steps = np.array([column.step for column in level.numeric])
        self._offsets = np.array([column.grid_offset() for column in level.numeric])
        self._stepped = self._steps > 0
        columns = len(level.numeric) + len(level.choices)
        crossed = CROSSED_CANDIDATES * self._settings.candidates // CANDIDATES
        self._crossed = crossed if columns >= CROSSED_COLUMNS else 0
        self._slip_factors = np.array(
            [
                BRANCH_SLIP_FACTOR if column.opens_branches else SLIP_FACTOR
                for column in level.choices
            ]
        )
        # Only a level without branches is a whole configuration, which is known to be tried.
        self._finite = bool((self._steps > LEAST_STEP).all()) and not any(
            column.opens_branches for column in level.choices
        )
        ranking = LossRanking() if objectives == 1 else FrontRanking(objectives)
        self.observations = Observations(level, ranking, recognise=self._finite)
        self._prior = level_prior(level)
        self._success = RowFeasibility(len(level.numeric), self._frame.counts, SAFE)

    def propose(
        self,
        rng: np.random.Generator,
        pending: Pending | None = None,
        allowed: Allowed | None = None,
        *,
        crowded: bool = False,
    ) -> Row:
        """Draw candidates; return the row of best good/rest density ratio, an allowed one if any.

        Args:
            rng: of all draws.
            pending: running trials; None if there are none on this level.
            allowed: predicate of rows; the best candidate that it accepts is returned, or the best
                of all if it accepts none; None accepts every row.
            crowded: whether other trials are running, on any level.
        """
        if not self.level.numeric and not self.level.choices:
            return Row(self.level.index, (), ())
        good, rest = self._densities(pending)
        any_failed = self._success.current() is not None
        lied = pending is not None and pending.lie is not None
        thinning = LIED_THINNING if lied and not self._finite else 1
        crossed = self._crossed if crowded else 0
        count = max(self._settings.candidates // thinning, 1)
        if any_failed:
            count *= FEASIBLE_FACTOR
        points, options = _candidates(good, rng, count, crossed // thinning)
        if self._prior is not None:
            own = slice(0, count, PRIOR_INTERVAL)
            points[own], options[own] = self._prior.redrawn(points[own], options[own], rng)
        points = self._on_grid(points)
        gain = good.log_density(points, options) - rest.log_density(points, options)
        # Without it an unbounded column drifts without limit where results have no information.
        gain += self._frame.bell_log_density(points)
        if self._prior is not None:
            exponent = prior_exponent(len(self.observations), PRIOR_STRENGTH)
            gain += exponent * self._prior.log_ratio(points, options)
        if any_failed:
            weights = self._success.log_weights(points, options)
            gain += 0.0 if weights is None else weights
        if self._finite:
            gain -= TRIED_PENALTY * self._tried(points, options, pending)
        best = int(gain.argmax())
        if allowed is not None:
            for index in np.argsort(-gain, kind="stable"):
                row = self._row(points[index], options[index])
                if allowed(row):
                    return row
        return self._row(points[best], options[best])

    def add(self, row: Row, outcome: Outcome) -> None:
        """Add the row of a trial with a result."""
        self.observations.add(row, outcome)
        self._success.add(row.coordinates, row.options, succeeded=True)

    def add_failure(self, row: Row) -> None:
        """Add the row of a trial that failed; it is tried again after all others only."""
        self.observations.recognise(row)
        self._success.add(row.coordinates, row.options, succeeded=False)

    def log_success(self, row: Row) -> float:
        """Return the log probability that a trial of this row succeeds; 0 if none has failed."""
        return self._success.log_probability(row.coordinates, row.options)

    def _row(self, point: Floats, option: Ints) -> Row:
        return Row(self.level.index, tuple(point.tolist()), tuple(option.tolist()))

    def _densities(self, pending: Pending | None = None) -> tuple[Mixture, Mixture]:
        known = self.observations
        ranking, total = known.ranking, len(known)
        running = pending.rows if pending else []
        lie = pending.lie if pending else None
        settings = self._settings
        split = min(math.ceil(settings.good_factor * math.sqrt(total)), settings.good_limit)
        best, weights = ranking.best(split)
        # Made-up results that rank as good join the good rows, without displacing known ones.
        joining = running if lie is not None and ranking.place(lie) < split else []
        opposed = [] if joining else running
        near = ranking.others(best, REST_LIMIT)
        spread = 1.0 if lie is None else math.sqrt(1.0 + len(running) / PENDING_SCALE)
        floor = min(max(FLOOR_FACTOR * spread / max(total, 1), FLOOR_LEAST), FLOOR_MOST)
        good, rest = self._joined(best, joining), self._joined(near, opposed)
        shares = np.full(len(joining), JOINT_LIE_WEIGHT / max(len(joining), 1))
        repelling = np.full(len(opposed), RUNNING_WEIGHT if lie is None else 1.0)
        near_weights = np.append(np.ones(len(near)), repelling)
        if settings.newest is not None:
            weights = weights * age_weights(best, total, settings.newest)
            near_weights[: len(near)] *= age_weights(near, total, settings.newest)
        others = total - len(best) - len(near)
        return (
            self._good(*good, np.append(weights, shares), floor),
            self._rest(*rest, near_weights, others, floor),
        )

    def _joined(self, positions: list[int], running: Sequence[Row]) -> tuple[Floats, Ints]:
        """Return the points and options of known rows, followed by those of running trials."""
        points, options = self.observations.rows(positions)
        if not running:
            return points, options
        return (
            np.concatenate([points, np.array([row.coordinates for row in running])]),
            np.concatenate([options, np.array([row.options for row in running], dtype=np.int64)]),
        )

    def _good(self, centres: Floats, options: Ints, weights: Floats, floor: float) -> Mixture:
        """Return the density of the good rows, with kernels as wide as gaps between neighbours."""
        count = len(centres)
        gaps = neighbour_gaps(centres) if count > 1 else np.full(centres.shape, LONELY_WIDTH)
        return Mixture(
            frame=self._frame,
            centres=centres,
            widths=np.clip(gaps, np.maximum(floor, GOOD_STEP * self._steps), self._widest),
            options=options,
            slip=self._slip(count),
            weights=weights,
            prior_weight=self._settings.prior_weight,
        )

    def _rest(
        self, centres: Floats, options: Ints, weights: Floats, others: int, floor: float
    ) -> Mixture:
        """Return the density of worse rows; `others` without kernels add to the prior weight."""
        share = REST_FACTOR / max(centres.shape[1], 1) ** REST_POWER
        width = min(max(share * floor, FLOOR_LEAST), REST_MOST)
        return Mixture(
            frame=self._frame,
            centres=centres,
            widths=np.maximum(width, REST_STEP * self._steps),
            options=options,
            slip=self._slip(len(centres) + others),
            weights=weights,
            prior_weight=self._settings.prior_weight + others,
        )

    def _slip(self, kernels: int) -> Floats:
        weight = self._slip_factors * self._frame.counts
        slip: Floats = weight / (kernels + 1.0 + weight)
        return slip

    def _on_grid(self, points: Floats) -> Floats:
        """Move points in place to the nearest values of stepped columns, and return them."""
        stepped = self._stepped
        if not stepped.any():
            return points
        steps, offsets = self._steps[stepped], self._offsets[stepped]
        snapped = offsets + np.round((points[:, stepped] - offsets) / steps) * steps
        points[:, stepped] = np.where(
            self._frame.bounded[stepped], np.clip(snapped, 0.0, 1.0), snapped
        )
        return points

    def _tried(self, points: Floats, options: Ints, pending: Pending | None) -> Bools:
        running = [] if pending is None else pending.rows
        taken = {row_key(row.coordinates, row.options) for row in running}
        rows = zip(points.tolist(), options.tolist(), strict=True)
        keys = [row_key(tuple(point), tuple(option)) for point, option in rows]
        return np.array([key in taken or self.observations.has(key) for key in keys])


def age_weights(positions: Sequence[int], count: int, newest: int) -> Floats:
    """Return `(k,)` factors in (0, 1] that fade old results, as in hyperopt's linear forgetting.

    Args:
        positions: of k results in the order in which they came, from 0.
        count: of all results.
        newest: how many of the newest have the factor 1.
    """
    older = count - newest
    if older <= 0:
        return np.ones(len(positions))
    ramp: Floats = np.linspace(1.0 / count, 1.0, older)
    factors = np.concatenate([ramp, np.ones(newest)])
    found: Floats = factors[np.array(positions, dtype=np.int64)]
    return found


def _candidates(
    good: Mixture, rng: np.random.Generator, count: int, crossed: int
) -> tuple[Floats, Ints]:
    """Return `count` draws of a density, `crossed` of which mix its kernels."""
    points, options = good.draw(count - crossed, rng)
    if not crossed:
        return points, options
    mixed_points, mixed_options = good.draw_crossed(crossed, rng, CROSSED_NARROWING)
    return np.concatenate([points, mixed_points]), np.concatenate([options, mixed_options])
