"""Parzen estimators over the rows of one level: one kernel per observation, and the prior.

A kernel is a product over columns. On a numeric column it is a normal density, truncated to [0, 1]
where the column is bounded; on a choice it is the observed option, or with the probability `slip`
any option. Pure functions of arrays; k kernels, d numeric columns, c choices, m points.
"""

from dataclasses import dataclass

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.models.normal_distribution import LOG_SQRT_2PI, approximate_normal_cdf

_REDRAWS = 8
"""Repetitions of a draw outside its bounds before it is clipped."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Columns of one level and their prior: uniform in [0, 1], or a bell, and even options."""

    bounded: Bools
    """`(d,)`, whether the coordinate lies in [0, 1]; otherwise its prior is a bell around 0.5."""
    bell_width: float
    """Standard deviation of that bell."""
    counts: Ints
    """`(c,)`, number of options per choice, each >= 1."""

    def narrowed(self, widths: Floats) -> Floats:
        """Return kernel widths, limited to the prior's bell width in unbounded columns.

        Wider kernels outweigh the prior far away from all results: proposals there would widen
        them further, and diverge.
        """
        return np.where(self.bounded, widths, np.minimum(widths, self.bell_width))

    def prior_log_density(self, points: Floats) -> Floats:
        """Return the log density of the prior at `(m, d)` points, as `(m,)`."""
        density: Floats = self.bell_log_density(points) - np.log(self.counts).sum()
        return density

    def bell_log_density(self, points: Floats) -> Floats:
        """Return the part of the prior's log density that unbounded columns make, `(m,)`."""
        if self.bounded.all():
            return np.zeros(len(points))
        z = (points[:, ~self.bounded] - 0.5) / self.bell_width
        logs: Floats = -0.5 * z * z - (np.log(self.bell_width) + LOG_SQRT_2PI)
        total: Floats = logs.sum(axis=1)
        return total

    def draw_prior(self, count: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return `(count, d)` points and `(count, c)` options of the prior."""
        points = rng.random((count, len(self.bounded)))
        if not self.bounded.all():
            bell = rng.standard_normal(points.shape) * self.bell_width + 0.5
            points = np.where(self.bounded, points, bell)
        options = (rng.random((count, len(self.counts))) * self.counts).astype(np.int64)
        return points, options


@dataclass(frozen=True, slots=True)
class Mixture:
    """Mixture density; its kernels share their widths by column, or each has its own."""

    frame: Frame
    centres: Floats
    """`(k, d)`"""
    widths: Floats
    """`(d,)` or `(k, d)`, standard deviations before the cut, > 0."""
    options: Ints
    """`(k, c)`"""
    slip: Floats
    """`(c,)`, in (0, 1)."""
    weights: Floats
    """`(k,)`, >= 0."""
    prior_weight: float
    """Weight of the prior, on the same scale as `weights`; > 0."""

    def log_density(self, points: Floats, options: Ints) -> Floats:
        """Return the log density `(m,)` at points with options, the prior included.

        Args:
            points: `(m, d)`.
            options: `(m, c)`.

        Returns:
            `(m,)`.
        """
        prior = self.frame.prior_log_density(points)
        total = self.weights.sum() + self.prior_weight
        prior += np.log(self.prior_weight / total)
        if not len(self.centres):
            return prior
        with np.errstate(divide="ignore"):  # a weight of 0 is a kernel that is not there
            exponent = np.log(self.weights / total) + self._kernel_log_norms()
        exponent = exponent - 0.5 * self._squared_distances(points)
        exponent += self._option_log_masses(options)
        peak = np.maximum(exponent.max(axis=1), prior)
        mass = np.exp(exponent - peak[:, None]).sum(axis=1) + np.exp(prior - peak)
        density: Floats = peak + np.log(mass)
        return density

    def _kernel_log_norms(self) -> Floats:
        """Return each kernel's log normalising factor `(k,)`, for its mass inside the bounds."""
        widths = np.broadcast_to(self.widths, self.centres.shape)
        norms: Floats = -np.log(widths).sum(axis=1) - LOG_SQRT_2PI * self.centres.shape[1]
        bounded = self.frame.bounded
        if bounded.any():
            inside = kernel_mass(self.centres[:, bounded], widths[:, bounded])
            norms -= np.log(inside).sum(axis=1)
        return norms

    def _squared_distances(self, points: Floats) -> Floats:
        """Return squared distances `(m, k)` of points from kernel centres, in units of widths."""
        if self.widths.ndim == 1:  # shared widths: one matrix product instead of m * k * d terms
            scaled, centres = points / self.widths, self.centres / self.widths
            squares = (scaled * scaled).sum(axis=1)[:, None] + (centres * centres).sum(axis=1)
            shared: Floats = np.maximum(squares - 2.0 * (scaled @ centres.T), 0.0)
            return shared
        z = (points[:, None, :] - self.centres) / self.widths
        own: Floats = np.einsum("mkd,mkd->mk", z, z)
        return own

    def _option_log_masses(self, options: Ints) -> Floats | float:
        """Return per point and kernel the log probability of the options, `(m, k)`."""
        counts = self.frame.counts
        if not counts.size:
            return 0.0
        other = np.log(self.slip / counts)
        gain = np.log1p(-self.slip + self.slip / counts) - other
        total: Floats = np.full((len(options), len(self.options)), other.sum())
        for column in range(counts.size):
            same = options[:, column, None] == self.options[:, column]
            total += gain[column] * same
        return total

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return `(count, d)` points and `(count, c)` options of this density."""
        points, options = self.frame.draw_prior(count, rng)
        edges = np.cumsum(self.weights)
        total = (edges[-1] if len(edges) else 0.0) + self.prior_weight
        kernel = np.searchsorted(edges, rng.random(count) * total, side="right")
        drawn = np.flatnonzero(kernel < len(self.centres))
        if not len(drawn):
            return points, options
        kernel = kernel[drawn]
        widths = self.widths if self.widths.ndim == 1 else self.widths[kernel]
        points[drawn] = self._draw_points(self.centres[kernel], widths, rng)
        own = self.options[kernel]
        slipped = rng.random(own.shape) < self.slip
        options[drawn] = np.where(slipped, options[drawn], own)
        return points, options

    def draw_crossed(
        self, count: int, rng: np.random.Generator, narrowing: float
    ) -> tuple[Floats, Ints]:
        """Return draws that take each column from an independently chosen kernel.

        Args:
            count: how many.
            rng: of the draws.
            narrowing: factor of the kernels' widths, > 0.

        Returns:
            `(count, d)` points and `(count, c)` options; of the prior where there is no kernel.
        """
        points, options = self.frame.draw_prior(count, rng)
        if not len(self.centres):
            return points, options
        edges = np.cumsum(self.weights)
        kernel = np.searchsorted(edges, rng.random(points.shape) * edges[-1], side="right")
        column = np.arange(points.shape[1])
        widths = np.broadcast_to(self.widths, self.centres.shape)[kernel, column]
        points = self._draw_points(self.centres[kernel, column], narrowing * widths, rng)
        kernel = np.searchsorted(edges, rng.random(options.shape) * edges[-1], side="right")
        own = self.options[kernel, np.arange(options.shape[1])]
        slipped = rng.random(own.shape) < self.slip
        return points, np.where(slipped, options, own)

    def _draw_points(self, centres: Floats, widths: Floats, rng: np.random.Generator) -> Floats:
        """Return `(m, d)` draws around centres; outside the bounds redrawn, at last clipped."""
        points = centres + widths * rng.standard_normal(centres.shape)
        bounded = self.frame.bounded
        for _ in range(_REDRAWS):
            outside = bounded & ((points < 0.0) | (points > 1.0))
            if not outside.any():
                return points
            again = centres + widths * rng.standard_normal(centres.shape)
            points = np.where(outside, again, points)
        return np.where(bounded, np.clip(points, 0.0, 1.0), points)


def kernel_mass(centres: Floats, widths: Floats) -> Floats:
    """Return the mass of normal densities in [0, 1]; shapes are those of the arguments."""
    return approximate_normal_cdf((1.0 - centres) / widths) - approximate_normal_cdf(
        -centres / widths
    )


def neighbour_gaps(centres: Floats) -> Floats:
    """Return, per column, the distance of each centre to the farther of its two neighbours.

    The outermost ones have one neighbour. Where centres form two clusters, those at the edges reach
    from one to the other.

    Args:
        centres: `(k, d)` with k >= 2.

    Returns:
        `(k, d)`.
    """
    order = np.argsort(centres, axis=0, kind="stable")
    steps = np.diff(np.take_along_axis(centres, order, axis=0), axis=0)
    wider = np.concatenate([steps[:1], np.maximum(steps[1:], steps[:-1]), steps[-1:]])
    gaps: Floats = np.empty_like(centres)
    np.put_along_axis(gaps, order, wider, axis=0)
    return gaps
