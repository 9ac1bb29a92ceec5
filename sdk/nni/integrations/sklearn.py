"""Search of scikit-learn's hyperparameters with the tuners of NNI: `NNISearchCV`.

Needs the extra `nni[sklearn]`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner
from nni.hpo.registry.validation import check_count
from nni.hpo.search.outcomes import StudyTrial
from nni.hpo.search.study import Study
from nni.integrations._distributions import ParameterDistributions
from nni.integrations._extras import missing_extra

try:
    import numpy as np
    from sklearn.base import is_classifier
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils import check_random_state

    from nni.integrations._subsamples import (
        RepeatedSplits,
        SubsampledSplits,
        halving_sizes,
        remaining,
    )
except ImportError as error:
    raise missing_extra("NNISearchCV", "scikit-learn 1.9 or newer", "sklearn") from error

__all__ = ["NNISearchCV"]

_SAMPLES = "n_samples"
"""Resource that is the number of samples."""


class NNISearchCV(BaseSearchCV):  # type: ignore[misc]  # ships no types
    """Search of hyperparameters by cross-validation, with any tuner of NNI.

    Its interface is that of `sklearn.model_selection.RandomizedSearchCV`: `fit` sets
    `best_params_`, `best_score_`, `best_estimator_`, `best_index_` and `cv_results_`, and the
    fitted search predicts with the best estimator. It is an estimator itself: for pipelines,
    `clone` and pickles.

    Args:
        estimator: estimator to tune.
        param_distributions: dict of parameter to a list of options, a sampling such as
            `nni.hpo.LogUniform(1e-4, 1)`, an entry of a search space, or a distribution of
            `scipy.stats`; or a list of such dicts.
        n_iter: number of configurations.
        tuner: name or object, see `nni.hpo.Study`.
        tuner_args: further arguments of a named tuner.
        objective: name of the score that the tuner maximises. None: the only one, or with several
            the one that `refit` names.
        batch_size: number of configurations that are proposed before their scores are known. More
            than 1 uses more processors, and makes the tuner learn later.
        resource: None; or what successive halving gives more of to fewer configurations:
            `n_samples`, or an integer parameter of the estimator such as `n_estimators`.
        factor: quotient of two rounds of successive halving, in resource and in configurations.
        min_resources: smallest resource of a round. `auto`: 1; for samples, two of each class in
            each fold.
        max_resources: resource of the last round. `auto`: all samples.
        scoring: as in `RandomizedSearchCV`, one score or several.
        n_jobs: number of fits at a time.
        refit: as in `RandomizedSearchCV`.
        cv: splits, the same ones for all configurations.
        verbose: as in `RandomizedSearchCV`.
        pre_dispatch: as in `RandomizedSearchCV`.
        random_state: seed of the tuner and of samples, or a generator that draws it.
        error_score: score of a fit that fails, which the tuner does not learn if it is NaN.
        return_train_score: whether `cv_results_` has scores of the training samples.

    Raises:
        ValueError: an argument is wrong; at `fit`.
        TypeError: a distribution has none of the forms; at `fit`.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> from nni.hpo import LogUniform
        >>> from nni.integrations import NNISearchCV
        >>> search = NNISearchCV(
        ...     LogisticRegression(max_iter=500),
        ...     {"C": LogUniform(1e-3, 100), "fit_intercept": [True, False]},
        ...     n_iter=5,
        ...     tuner="TPE",
        ...     cv=3,
        ...     random_state=0,
        ... )
        >>> f"{search.fit(*load_iris(return_X_y=True)).best_score_:.2f}"
        '0.9...'
    """

    def __init__(  # noqa: PLR0913 - the interface of RandomizedSearchCV
        self,
        estimator: Any,  # noqa: ANN401 - ships no types
        param_distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        n_iter: int = 10,
        tuner: str | Tuner = "auto",
        tuner_args: Mapping[str, Any] | None = None,
        objective: str | None = None,
        batch_size: int = 1,
        resource: str | None = None,
        factor: float = 3,
        min_resources: int | str = "auto",
        max_resources: int | str = "auto",
        scoring: Any = None,  # noqa: ANN401 - as in scikit-learn
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., int] = True,
        cv: Any = None,  # noqa: ANN401 - as in scikit-learn
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,  # noqa: ANN401 - as in scikit-learn
        error_score: float | str = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.tuner = tuner
        self.tuner_args = tuner_args
        self.objective = objective
        self.batch_size = batch_size
        self.resource = resource
        self.factor = factor
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.random_state = random_state
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def fit(self, X: Any, y: Any = None, **params: Any) -> "NNISearchCV":  # noqa: ANN401 - of scikit-learn
        """Search, and with `refit` fit the best configuration to all samples; return self.

        Args:
            X: `(n_samples, n_features)`, samples.
            y: `(n_samples,)` or `(n_samples, n_outputs)`, targets.
            params: further arguments of the estimator's `fit`, the splitter and the scorer.

        Returns:
            The search itself.

        Raises:
            ValueError: an argument of the search is wrong.
        """
        check_count("n_iter", self.n_iter, least=1)
        check_count("batch_size", self.batch_size, least=1)
        if self.resource is not None:
            classes = len(np.unique(y)) if is_classifier(self.estimator) else 1
            self._sizes = (X.shape[0] if hasattr(X, "shape") else len(X), classes)
        super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Any]) -> None:
        """Evaluate the tuner's proposals; with a resource, halve the candidates round by round."""
        search = _Search(self, evaluate_candidates)
        if self.resource is None:
            search.run(search.splits, {})
            return
        least, most = self._resource_limits()
        sizes = halving_sizes(self.n_iter, least, most, self.factor)
        candidates = search.run(*search.round_of(0, sizes[0]))
        for number, size in enumerate(sizes[1:], 1):
            candidates = candidates[: remaining(len(candidates), self.factor)]
            candidates = search.evaluate(
                [parameters for _, parameters in candidates], *search.round_of(number, size)
            )

    def _resource_limits(self) -> tuple[int, int]:
        """Return the checked smallest and largest resource of a round; `auto` from the samples.

        Raises:
            ValueError: a limit is wrong, or the resource is no parameter.
        """
        if not self.factor > 1:
            raise ValueError(f"factor must be > 1, got {self.factor!r}")
        by_samples = self.resource == _SAMPLES
        if not by_samples and self.resource not in self.estimator.get_params():
            raise ValueError(
                "resource must be 'n_samples' or a parameter of the estimator, got "
                f"{self.resource!r}"
            )
        samples, classes = self._sizes
        least, most = self.min_resources, self.max_resources
        if most == "auto":
            if not by_samples:
                raise ValueError(f"max_resources must be a number with resource={self.resource!r}")
            most = samples
        if least == "auto":
            least = min(2 * self.n_splits_ * classes, most) if by_samples else 1
        check_count("max_resources", most, least=1)
        check_count("min_resources", least, least=1)
        if int(least) > int(most) or (by_samples and int(most) > samples):
            raise ValueError(
                f"min_resources <= max_resources{f' <= {samples}' if by_samples else ''} must "
                f"hold, got {least} and {most}"
            )
        return int(least), int(most)

    @staticmethod
    def _select_best_index(
        refit: Any,  # noqa: ANN401 - as in scikit-learn
        refit_metric: str,
        results: Mapping[str, Any],
    ) -> int:
        """Return the position of the best candidate, of the last round with successive halving."""
        if callable(refit) or "iter" not in results:
            return int(BaseSearchCV._select_best_index(refit, refit_metric, results))  # noqa: SLF001 - of the base class
        last = np.flatnonzero(results["iter"] == np.max(results["iter"]))
        scores = results[f"mean_test_{refit_metric}"][last]
        return int(last[0 if np.isnan(scores).all() else np.nanargmax(scores)])


Candidates = list[tuple[float, dict[str, Any]]]
"""Scores and parameters, best first."""


class _Search:
    """One run of a search: its tuner, its splits and its scores."""

    def __init__(self, search: NNISearchCV, evaluate_candidates: Callable[..., Any]) -> None:
        self._settings = search
        self._evaluate = evaluate_candidates
        self._distributions = ParameterDistributions(search.param_distributions)
        self._seed = int(check_random_state(search.random_state).randint(2**31 - 1))
        self.splits = RepeatedSplits(search._checked_cv_orig)  # noqa: SLF001 - BaseSearchCV has it for subclasses
        self._study = Study(
            self._distributions.search_space(),
            tuner=deepcopy(search.tuner),
            tuner_args=search.tuner_args,
            optimize_mode="maximize",
            seed=self._seed,
        )

    def run(self, splits: Any, extra: Mapping[str, Any]) -> Candidates:  # noqa: ANN401 - a splitter
        """Evaluate the tuner's proposals and pass it the scores; return the candidates, best first.

        Args:
            splits: of the cross-validation.
            extra: see `evaluate`.
        """
        found: Candidates = []
        for trials in self._batches():
            given = [self._distributions.parameters(trial.parameters) for trial in trials]
            scores = self._scores(given, splits, extra)
            for trial, parameters, score in zip(trials, given, scores, strict=True):
                self._study.tell(trial, score if np.isfinite(score) else None)
                found.append((score, parameters))
        return _best_first(found)

    def evaluate(
        self,
        parameters: list[dict[str, Any]],
        splits: Any,  # noqa: ANN401 - a splitter
        extra: Mapping[str, Any],
    ) -> Candidates:
        """Evaluate given parameters; return the candidates, best first.

        Args:
            parameters: of each candidate.
            splits: of the cross-validation.
            extra: number of the round and resource, in successive halving.
        """
        return _best_first(
            list(zip(self._scores(parameters, splits, extra), parameters, strict=True))
        )

    def round_of(self, number: int, size: int) -> tuple[Any, Mapping[str, Any]]:
        """Return the splits and further columns of a round of successive halving."""
        search = self._settings
        splits: Any = self.splits
        if search.resource == _SAMPLES:
            fraction = size / search._sizes[0]  # noqa: SLF001 - of this module
            splits = SubsampledSplits(self.splits, fraction, self._seed)
        return splits, {"iter": number, "n_resources": size}

    def _batches(self) -> Iterator[list[StudyTrial]]:
        left = self._settings.n_iter
        while left > 0:
            batch: list[StudyTrial] = []
            while len(batch) < min(left, self._settings.batch_size):
                try:
                    batch.append(self._study.ask())
                except NoMoreTrialError:
                    break  # it has none left, or none before the results of these
            if not batch:
                return
            left -= len(batch)
            yield batch

    def _scores(
        self,
        parameters: list[dict[str, Any]],
        splits: Any,  # noqa: ANN401 - a splitter
        extra: Mapping[str, Any],
    ) -> list[float]:
        resource = self._settings.resource
        if resource not in {None, _SAMPLES}:
            parameters = [{**one, str(resource): extra["n_resources"]} for one in parameters]
        more = {name: [value] * len(parameters) for name, value in extra.items()}
        results = self._evaluate(parameters, splits, more_results=more)
        scores = results[f"mean_test_{self._objective(results)}"]
        return [float(score) for score in scores[-len(parameters) :]]

    def _objective(self, results: Mapping[str, Any]) -> str:
        """Return the name of the score to maximise; raise unless it is among the results.

        Raises:
            ValueError: there are several, and no argument names one of them.
        """
        search = self._settings
        prefix = "mean_test_"
        names = [name.removeprefix(prefix) for name in results if name.startswith(prefix)]
        wanted = search.objective
        if wanted is None:
            wanted = search.refit if isinstance(search.refit, str) else "score"
        if wanted not in names:
            raise ValueError(
                f"objective must be one of the scores {', '.join(names)}, got {search.objective!r} "
                f"with refit={search.refit!r}"
            )
        return wanted


def _best_first(candidates: Candidates) -> Candidates:
    """Return candidates in falling order of their scores, those without one last."""
    return sorted(
        candidates, key=lambda one: -one[0] if np.isfinite(one[0]) else np.inf
    )  # of equal ones the earlier first
