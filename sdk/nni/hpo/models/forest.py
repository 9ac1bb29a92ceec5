"""Random forest for regression with predictive standard deviations.

Shapes: n observations, d columns, m points. A column holds ordered numbers or the codes of
categories; categories are split into two sets.

Source: Breiman, Random Forests, Machine Learning 45, 2001; variance of the prediction: Hutter,
Xu, Hoos and Leyton-Brown, Algorithm Runtime Prediction, Artificial Intelligence 206, 2014, section
4.3.2. The best split of a set of categories follows their mean targets (Breiman et al.,
Classification and Regression Trees, 1984, theorem 4.5).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints

_LEAST_SPLIT: Final = 4
"""Observations that a node needs to be split."""
_COLUMN_SHARE: Final = 5 / 6
"""Share of the columns that a node considers, drawn anew for each."""
_LEAF: Final = -1


@dataclass(frozen=True, slots=True)
class Split:
    """Split rule of a node: its column, and the threshold, or the categories that go left."""

    column: int
    threshold: float
    """Numbers up to it go left."""
    left: Bools | None
    """`(k,)`, per category whether it goes left; None for numbers."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Regression tree as arrays of nodes, from 0, the root: splits, children, means, variances."""

    columns: Ints
    """`(nodes,)`, -1 for a leaf."""
    thresholds: Floats
    left_sets: Bools
    """`(nodes, k)`; all false for nodes that split numbers."""
    categorical: Bools
    """`(nodes,)`"""
    children: Ints
    """`(nodes, 2)`"""
    means: Floats
    variances: Floats

    def leaves(self, points: Floats) -> Ints:
        """Return the node number `(m,)` of the leaf in which each of `(m, d)` points ends."""
        node = np.zeros(len(points), dtype=np.int64)
        active = np.flatnonzero(self.columns[node] != _LEAF)
        while len(active):
            at = node[active]
            values = points[active, self.columns[at]]
            left = values <= self.thresholds[at]
            sets = np.flatnonzero(self.categorical[at])
            if len(sets):
                left[sets] = self.left_sets[at[sets], values[sets].astype(np.int64)]
            node[active] = self.children[at, np.where(left, 0, 1)]
            active = active[self.columns[node[active]] != _LEAF]
        return node


@dataclass(frozen=True, slots=True)
class RandomForest:
    """Trees grown on different samples of the same observations."""

    trees: tuple[Tree, ...]

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return means and standard deviations `(m,)` at `(m, d)` points."""
        leaves = [tree.leaves(points) for tree in self.trees]
        means = np.array([t.means[at] for t, at in zip(self.trees, leaves, strict=True)])
        inner = np.array([t.variances[at] for t, at in zip(self.trees, leaves, strict=True)])
        variance = inner.mean(axis=0) + means.var(axis=0)  # law of total variance
        return means.mean(axis=0), np.sqrt(np.maximum(variance, 1e-12))


def grown_forest(
    points: Floats, targets: Floats, categories: Ints, trees: int, rng: np.random.Generator
) -> RandomForest:
    """Grow trees on bootstrap samples of the observations, and return the forest.

    Args:
        points: `(n, d)`; a categorical column holds codes 0, 1, ... .
        targets: `(n,)`.
        categories: `(d,)`, number of categories per column; 0 for ordered numbers.
        trees: how many, >= 1.
        rng: of the samples and the columns that a node considers.
    """
    grown = []
    for _ in range(trees):
        rows = rng.integers(len(points), size=len(points))
        grown.append(_Grower(points, targets, categories, rng).grow(rows))
    return RandomForest(tuple(grown))


class _Grower:
    """Builder of one regression tree that tries random columns first at each split."""

    def __init__(
        self, points: Floats, targets: Floats, categories: Ints, rng: np.random.Generator
    ) -> None:
        self._points, self._targets, self._categories = points, targets, categories
        self._rng = rng
        self._considered = max(1, round(_COLUMN_SHARE * points.shape[1]))

    def grow(self, rows: Ints) -> Tree:
        splits: list[Split | None] = []
        children: list[list[int]] = []
        moments: list[tuple[float, float]] = []
        waiting: list[tuple[Ints, int, int]] = [(rows, -1, 0)]
        while waiting:
            inside, parent, side = waiting.pop()
            node = len(splits)
            if parent >= 0:
                children[parent][side] = node
            targets = self._targets[inside]
            moments.append((float(targets.mean()), float(targets.var())))
            children.append([_LEAF, _LEAF])
            split = self._split(inside, targets)
            splits.append(split)
            if split is not None:
                left = _goes_left(split, self._points[inside, split.column])
                waiting += [(inside[~left], node, 1), (inside[left], node, 0)]
        return self._tree(splits, children, moments)

    def _tree(
        self,
        splits: list[Split | None],
        children: list[list[int]],
        moments: list[tuple[float, float]],
    ) -> Tree:
        width = max(1, int(self._categories.max(initial=0)))
        left_sets = np.zeros((len(splits), width), dtype=np.bool_)
        for node, split in enumerate(splits):
            if split is not None and split.left is not None:
                left_sets[node, : len(split.left)] = split.left
        return Tree(
            columns=np.array([_LEAF if s is None else s.column for s in splits], dtype=np.int64),
            thresholds=np.array([0.0 if s is None else s.threshold for s in splits]),
            left_sets=left_sets,
            categorical=np.array([s is not None and s.left is not None for s in splits]),
            children=np.array(children, dtype=np.int64),
            means=np.array([mean for mean, _ in moments]),
            variances=np.array([variance for _, variance in moments]),
        )

    def _split(self, rows: Ints, targets: Floats) -> Split | None:
        """Return the best split by random columns, else by the others; None for a leaf."""
        if len(rows) < _LEAST_SPLIT or targets.min() == targets.max():
            return None
        order = self._rng.permutation(self._points.shape[1])
        # Columns beyond the share are considered only if none before them can be split.
        for columns in (order[: self._considered], order[self._considered :]):
            split = self._best_split(rows, targets, columns)
            if split is not None:
                return split
        return None

    def _best_split(self, rows: Ints, targets: Floats, columns: Ints) -> Split | None:
        if not len(columns):
            return None
        keys = self._points[np.ix_(rows, columns)]
        ranks: dict[int, Floats] = {}
        for position, column in enumerate(columns):
            if self._categories[column]:
                rank = _category_ranks(keys[:, position], targets, int(self._categories[column]))
                ranks[position] = rank
                keys[:, position] = rank[keys[:, position].astype(np.int64)]
        found = _best_cut(keys, targets)
        if found is None:
            return None
        position, low, high = found
        # The data do not determine the place of the cut between the two.
        cut = low + float(self._rng.random()) * (high - low)
        column = int(columns[position])
        if position in ranks:
            return Split(column, 0.0, ranks[position] <= low)
        # Between neighbouring floats the cut may round up, which would leave the right side empty.
        return Split(column, cut if cut < high else low, None)


def _goes_left(split: Split, values: Floats) -> Bools:
    if split.left is None:
        return values <= split.threshold
    return split.left[values.astype(np.int64)]


def _category_ranks(codes: Floats, targets: Floats, count: int) -> Floats:
    """Return the rank `(count,)` of each category in the order of mean targets.

    Categories that do not occur get the mean of all targets.
    """
    at = codes.astype(np.int64)
    sizes = np.bincount(at, minlength=count)
    sums = np.bincount(at, weights=targets, minlength=count)
    means = np.where(sizes > 0, sums / np.maximum(sizes, 1), targets.mean())
    ranks = np.empty(count)
    ranks[np.argsort(means, kind="stable")] = np.arange(count)
    return ranks


def _best_cut(keys: Floats, targets: Floats) -> tuple[int, float, float] | None:
    """Return the column of `(n, c)` keys with the best cut, and the keys beside it; or None."""
    order = np.argsort(keys, axis=0, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=0)
    sums = np.cumsum(targets[order], axis=0)
    count = len(targets)
    left = np.arange(1, count)[:, None]
    total = sums[-1]
    # The squared error falls by as much as the squared sums per side, over their counts, rise.
    gains = sums[:-1] ** 2 / left + (total - sums[:-1]) ** 2 / (count - left)
    gains[ordered[1:] <= ordered[:-1]] = -np.inf  # no cut between equal keys
    best = int(np.argmax(gains))
    row, column = divmod(best, keys.shape[1])
    if gains[row, column] == -np.inf:
        return None
    low, high = float(ordered[row, column]), float(ordered[row + 1, column])
    return column, low, high
