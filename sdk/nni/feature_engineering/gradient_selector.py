"""Selection of columns by gradient search over a relaxation of the choice of a subset.

torch and scikit-learn come with `pip install 'nni[feature]'`; torch is imported by `fit`.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering._estimator import SelectionEstimator, check_integer
from nni.feature_engineering._scikit_learn import (
    check_is_fitted,
    check_random_state,
    expit,
    f_classif,
    f_regression,
)
from nni.feature_engineering._selection import ColumnUnits, selected_columns
from nni.feature_engineering._targets import WeightedTargets, class_targets, number_targets
from nni.feature_engineering.feature_selector import Column, RandomState, Table

if TYPE_CHECKING:
    import torch

    from nni.feature_engineering._power_sums import RowBatch

__all__ = ["FeatureGradientSelector", "GradientFeatureSelector"]

MAX_ORDER: Final = 12
"""Largest documented order of interactions."""
P = ParamSpec("P")

_SMALLEST: Final = 1e-300
"""Divisor where every degree of a group has become 0."""
_STARTS: Final = {"zero": 0.0, "on": 1.0, "off": -1.0, "onhigh": 5.0, "offhigh": -5.0}
"""Start of the scores; the probability of a column is the logistic function of its score."""
_MISSPELT: Final = {"penatly": "penalty", "prerocess": "preprocess"}
"""Names of arguments as NNI 2.x printed them."""


def _with_misprints(initialize: Callable[P, None]) -> Callable[P, None]:
    """Wrap a constructor to accept deprecated spellings of its arguments, with a warning."""

    @functools.wraps(initialize)
    def translated(*args: P.args, **kwargs: P.kwargs) -> None:
        for misprint, name in _MISSPELT.items():
            if misprint in kwargs:
                warnings.warn(
                    f"the argument is spelt {name}; {misprint} is a misprint of NNI 2.x",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[name] = kwargs.pop(misprint)
        initialize(*args, **kwargs)

    return translated


class FeatureGradientSelector(SelectionEstimator):
    """Selector of columns that explain the target, also by their interactions.

    Every column has a score. Its logistic function is the degree to which the column is in the
    subset, and the scores follow the gradient of an estimate of how learnable the target is from
    the subset. The estimate needs no model: it is computed from pairs of rows of a batch, in time
    and memory linear in the numbers of rows and columns. A penalty at the level of noise lets the
    scores of columns that explain nothing fall below 0.

    The selector is a transformer of scikit-learn. Sparse tables are read as CSR without a dense
    copy. Columns that are correlated are counted each by itself.

    Args:
        order: largest number of columns in an interaction, 1 to 12; higher is slower.
        penalty: weight of the penalty; 0 keeps every column that helps in the slightest.
        n_features: number of columns to select; None lets the search decide.
        max_features: upper bound of the number, below which the elbow of the scores decides.
            `n_features` wins over it.
        learning_rate: step size of the scores.
        init: start of the scores: "zero" (undecided), "on" and "off", "onhigh" and "offhigh"
            (farther from undecided), or "sklearn" (by the F statistic of each column alone).
        n_epochs: passes over the data.
        shuffle: shuffle the rows before each pass.
        batch_size: rows whose pairs are compared, at least 2.
        target_batch_size: rows over which the gradient is accumulated before a step.
        classification: the target has classes; otherwise real numbers.
        ordinal: the classes, sorted, are ordered numbers; otherwise each is an output of its own.
            None for True in classification, where alone it may be given.
        balanced: classes have equal weights; otherwise rows have. None as for `ordinal`.
        preprocess: "zscore" centres and scales columns to unit variance, "center" only centres.
        soft_grouping: columns of a group have scores of their own, and the penalty favours few
            groups and few columns in each; otherwise a group shares one score.
        verbose: 0 is silent; k prints a line after every k steps.
        device: "cpu" or "cuda".
        random_state: seed of shuffling and of the noise level; None for another one each time.

    Attributes:
        selected_features_: positions of the selected columns, best first.
        scores_: `(n_features,)`, final scores; a constant column has `-inf`.

    Examples:
        >>> import numpy as np
        >>> table = np.random.default_rng(0).normal(size=(400, 10))
        >>> target = table[:, 3] * table[:, 7] > 0
        >>> selector = FeatureGradientSelector(n_features=2, random_state=0).fit(table, target)
        >>> sorted(selector.get_selected_features())
        [3, 7]
    """

    @_with_misprints
    def __init__(  # noqa: PLR0913 - documented signature
        self,
        order: int = 4,
        penalty: float = 1,
        n_features: int | None = None,
        max_features: int | None = None,
        learning_rate: float = 0.1,
        init: str = "zero",
        n_epochs: int = 1,
        *,
        shuffle: bool = True,
        batch_size: int = 1000,
        target_batch_size: int = 1000,
        classification: bool = True,
        ordinal: bool | None = None,
        balanced: bool | None = None,
        preprocess: str = "zscore",
        soft_grouping: bool = True,
        verbose: int = 0,
        device: str = "cpu",
        random_state: RandomState = None,
    ) -> None:
        self.order = order
        self.penalty = penalty
        self.n_features = n_features
        self.max_features = max_features
        self.learning_rate = learning_rate
        self.init = init
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.batch_size = batch_size
        self.target_batch_size = target_batch_size
        self.classification = classification
        self.ordinal = ordinal
        self.balanced = balanced
        self.preprocess = preprocess
        self.soft_grouping = soft_grouping
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    def fit(self, X: Table, y: Column, groups: Column = None) -> Self:
        """Search the columns' scores by gradient ascent; set `scores_` and `selected_features_`.

        Args:
            X: table, `(n_samples, n_features)`: an array, a data frame or a sparse matrix.
            y: `(n_samples,)`, labels of classes or real numbers.
            groups: `(n_features,)`, labels; columns with the same one are selected as a unit. None
                for columns that are independent.

        Returns:
            The selector itself.

        Raises:
            ValueError: an argument is outside its range, or the data do not fit together.
        """
        self._check_arguments()
        table, target = self._checked(X, y)
        units = ColumnUnits.of_groups(groups, table.shape[1])
        device = _torch_device(self.device)
        random = check_random_state(self.random_state)
        if self.n_features is not None and self.max_features is not None:
            warnings.warn("n_features is given, so max_features is ignored", stacklevel=2)
        search = _ScoreSearch(self, table, self._targets(target), units, device)
        scores = search.run(self._start(table, target), random)
        self.scores_ = scores
        self.selected_features_ = selected_columns(
            scores, units, self.n_features, self.max_features
        )
        return self

    def get_selected_features(self) -> list[int]:
        """Return the positions of the selected columns, best first.

        Returns:
            Positions; groups are whole.

        Raises:
            NotFittedError: `fit` was not called.
        """
        check_is_fitted(self)
        return list(self.selected_features_)

    def _check_arguments(self) -> None:
        """Raise ValueError or TypeError unless every argument is in its range."""
        check_integer("order", self.order, 1, MAX_ORDER)
        check_integer("n_epochs", self.n_epochs, 1)
        check_integer("batch_size", self.batch_size, 2)
        check_integer("target_batch_size", self.target_batch_size, 1)
        check_integer("verbose", self.verbose, 0)
        for name in ("n_features", "max_features"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if not self.penalty >= 0:
            raise ValueError(f"penalty must be >= 0, got {self.penalty}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be > 0, got {self.learning_rate}")
        for name, known in (("init", (*_STARTS, "sklearn")), ("preprocess", ("zscore", "center"))):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}"
                )
        for name in ("ordinal", "balanced"):
            if getattr(self, name) and not self.classification:
                raise ValueError(f"{name} needs classification=True; leave it out for a regression")

    def _targets(self, target: NDArray[Any]) -> WeightedTargets:
        if not self.classification:
            return number_targets(target)
        return class_targets(
            target,
            ordinal=self.ordinal is None or self.ordinal,
            balanced=self.balanced is None or self.balanced,
        )

    def _start(self, table: Table, target: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores to start from: a constant, or ranks of F statistics in [-1, 1]."""
        if self.init != "sklearn":
            return np.full(table.shape[1], _STARTS[self.init])
        statistic = f_classif if self.classification else f_regression
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # constant columns have no statistic
            values = statistic(table, target)[0]
        ranks = np.argsort(np.argsort(np.nan_to_num(values, nan=-1.0), kind="stable"))
        return 2.0 * ranks / max(1, len(ranks) - 1) - 1.0


GradientFeatureSelector = FeatureGradientSelector
"""The title that NNI 2.x gave the selector."""


class _ScoreSearch:
    """Gradient ascent on the scores of one fit.

    Args:
        options: arguments of the search.
        table: `(n_samples, n_features)`, an array or CSR.
        targets: what is explained.
        units: groups of the columns.
        device: device of the computation.
    """

    def __init__(
        self,
        options: FeatureGradientSelector,
        table: Table,
        targets: WeightedTargets,
        units: ColumnUnits,
        device: torch.device,
    ) -> None:
        from nni.feature_engineering._power_sums import column_statistics

        self._options = options
        self._table = table
        self._targets = targets
        self._units = units
        self._device = device
        unit_variance = options.preprocess == "zscore"
        self._mean, self._factor = column_statistics(table, unit_variance=unit_variance)
        self._order = min(options.order, int((self._factor > 0).sum()))

    def run(self, start: NDArray[np.float64], random: RandomState) -> NDArray[np.float64]:
        """Run all epochs from start scores; return the final ones, `-inf` for constant columns."""
        scores = np.where(self._factor > 0, start, -np.inf)
        if self._order == 0:
            return scores
        steps = 0
        for _ in range(self._options.n_epochs):
            signal, noise, rows = np.zeros_like(scores), np.zeros_like(scores), 0
            batches = list(self._batches(random))
            for number, batch in enumerate(batches, 1):
                found = self._gradient(batch, scores, random)
                signal += len(batch) * found[0]
                noise += len(batch) * found[1]
                rows += len(batch)
                if rows >= self._options.target_batch_size or number == len(batches):
                    scores = self._step(scores, signal / rows, noise / rows)
                    signal, noise, rows = np.zeros_like(scores), np.zeros_like(scores), 0
                    steps += 1
                    self._print(steps, scores)
        return scores

    def _batches(self, random: RandomState) -> Iterator[NDArray[np.intp]]:
        """Yield the rows of each batch, of nearly equal sizes; batches of one row are left out."""
        n_rows = self._table.shape[0]
        rows = random.permutation(n_rows) if self._options.shuffle else np.arange(n_rows)
        count = math.ceil(n_rows / self._options.batch_size)
        yield from (batch for batch in np.array_split(rows, count) if len(batch) > 1)

    def _gradient(
        self, rows: NDArray[np.intp], scores: NDArray[np.float64], random: RandomState
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a batch's gradients in the scores, for the target and for its permutation."""
        import torch

        from nni.feature_engineering._learnability import learnability_gradient

        degrees = expit(scores)
        vectors = self._targets.vectors[rows] * self._targets.weights[rows, None]
        found = learnability_gradient(
            self._batch(rows),
            torch.from_numpy(vectors).to(self._device),
            torch.from_numpy(degrees).to(self._device),
            self._order,
            torch.from_numpy(random.permutation(len(rows))).to(self._device),
        )
        slope = degrees * (1 - degrees)
        return slope * found.signal.cpu().numpy(), slope * found.noise.cpu().numpy()

    def _batch(self, rows: NDArray[np.intp]) -> RowBatch:
        from nni.feature_engineering._power_sums import RowBatch

        return RowBatch(self._table[rows], self._mean, self._factor, self._device)

    def _step(
        self,
        scores: NDArray[np.float64],
        signal: NDArray[np.float64],
        noise: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return new scores after a step along the penalized gradient, of RMS `learning_rate`."""
        varying = np.isfinite(scores)
        if not self._options.soft_grouping:
            signal, noise = self._shared(signal), self._shared(noise)
        level = np.sqrt(np.mean(noise[varying] ** 2))
        # Donoho and Johnstone: no column of pure noise passes this threshold, most of the time.
        threshold = level * math.sqrt(2 * math.log(max(2, len(self._units.sizes))))
        direction = signal - self._options.penalty * threshold * self._group_shares(scores)
        length = np.sqrt(np.mean(direction[varying] ** 2))
        if not length > 0:
            return scores
        return scores + self._options.learning_rate * np.where(varying, direction / length, 0.0)

    def _shared(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each column's group gradient, scaled to the noise of one column."""
        totals = np.bincount(self._units.unit, weights=gradient)
        return (totals / np.sqrt(self._units.sizes))[self._units.unit]

    def _group_shares(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient of the penalty: half the columns' degrees, half the groups' norms."""
        if not self._options.soft_grouping:
            return np.ones_like(scores)
        degrees = expit(scores)
        squares = np.bincount(self._units.unit, weights=degrees**2) / self._units.sizes
        norm = np.sqrt(squares)[self._units.unit]
        shares: NDArray[np.float64] = 0.5 + 0.5 * degrees / np.maximum(norm, _SMALLEST)
        return shares

    def _print(self, step: int, scores: NDArray[np.float64]) -> None:
        if self._options.verbose and step % self._options.verbose == 0:
            above = int((scores > 0).sum())
            print(f"step {step}: {above} of {len(scores)} columns above 0")  # noqa: T201 - documented


def _torch_device(name: str) -> torch.device:
    """Return the torch device of this name; raise if torch or the device is missing.

    Raises:
        ImportError: torch is not installed.
        ValueError: there is no such device here.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "FeatureGradientSelector needs torch; run: pip install 'nni[feature]'"
        ) from error
    if name.partition(":")[0] not in {"cpu", "cuda"}:
        raise ValueError(f"device must be 'cpu' or 'cuda', got {name!r}")
    if name != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but torch finds no GPU here; use device='cpu'")
    return torch.device(name)
