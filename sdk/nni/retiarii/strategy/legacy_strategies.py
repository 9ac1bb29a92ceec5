"""Strategies with the arguments of NNI 2.x: translations to those of `nni.nas.strategy`.

What NNI 2.x had as an argument of a strategy is a middleware of `nni.nas` today; an adapter places
it between the strategy and its engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from nni.nas.execution import ExecutionEngine
from nni.nas.space import ExecutableModelSpace
from nni.nas.strategy import GridSearch, PolicyBasedRL, Random, RegularizedEvolution, Strategy
from nni.nas.strategy.middleware import FailureHandler, Filter, StrategyMiddleware
from nni.nas.strategy.regularized_evolution import ScoredSample
from nni.retiarii.deprecation import warn_once

ModelFilter = Callable[[ExecutableModelSpace], bool]
"""Function of a frozen model that returns whether it is evaluated."""


class SubmissionLimit(StrategyMiddleware):
    """Middleware whose budget ends after a number of models.

    Args:
        limit: number of models.

    Raises:
        ValueError: `limit` is not positive.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"the number of models must be >= 1, got {limit}")
        super().__init__(retain_history=False)
        self._left = limit

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Submit models to the engine below, and count them.

        Args:
            *models: frozen models.
        """
        self._left -= len(models)
        self.engine.submit_models(*models)

    def budget_available(self) -> bool:
        """Return whether a model is left, and the budget of the engine below lasts.

        Returns:
            False once the limit is reached.
        """
        return self._left > 0 and super().budget_available()


class _WithMiddleware(Strategy):
    """Strategy that submits to its engine through middleware of its own."""

    _middlewares: Sequence[StrategyMiddleware] = ()

    def initialize(self, model_space: ExecutableModelSpace, engine: ExecutionEngine) -> None:
        """Set space and engine; the middleware stands between this strategy and the engine."""
        for middleware in self._middlewares:
            middleware.set_engine(engine)
            engine = middleware
        super().initialize(model_space, engine)


class LegacyRandom(_WithMiddleware, Random):
    """`Random` of NNI 2.x: with `variational`, without repetitions by default, with a filter.

    Args:
        variational: true for spaces of varying size; every space is sampled directly now, so it
            has no further effect. It needs `dedup=False`.
        dedup: whether each model is submitted once only.
        model_filter: function of a model that returns whether it is evaluated; None for all.

    Raises:
        ValueError: both `variational` and `dedup` are set.
    """

    def __init__(
        self,
        variational: bool = False,  # noqa: FBT001, FBT002 - documented signature
        dedup: bool = True,  # noqa: FBT001, FBT002 - documented signature
        model_filter: ModelFilter | None = None,
    ) -> None:
        warn_once("strategy.Random", "nni.nas.strategy.Random")
        if variational and dedup:
            raise ValueError("dedup must be False if variational is True, got True")
        super().__init__(dedup=dedup)
        if model_filter is not None:
            self._middlewares = [Filter(model_filter, retain_history=False)]


class LegacyGridSearch(GridSearch):
    """`GridSearch` of NNI 2.x: shuffles models by default, a hundred at a time.

    Args:
        shuffle: whether models are shuffled, a hundred at a time.
    """

    def __init__(self, shuffle: bool = True) -> None:  # noqa: FBT001, FBT002 - documented signature
        warn_once("strategy.GridSearch", "nni.nas.strategy.GridSearch")
        super().__init__(shuffle=shuffle)


class LegacyRegularizedEvolution(_WithMiddleware, RegularizedEvolution):
    """`RegularizedEvolution` of NNI 2.x: minimizes or maximizes; ends after `cycles` models.

    Args:
        optimize_mode: `maximize` or `minimize` the metric.
        population_size: number of members of the population.
        sample_size: members that take part in a tournament; fewer than `population_size`.
        cycles: number of models.
        mutation_prob: probability with which each dimension is drawn again.
        on_failure: `ignore`: a model that fails does not enter the population; `worst`: it enters
            it with the worst metric.

    Raises:
        ValueError: an argument is outside its range.
    """

    def __init__(
        self,
        optimize_mode: Literal["maximize", "minimize"] = "maximize",
        population_size: int = 100,
        sample_size: int = 25,
        cycles: int = 20000,
        mutation_prob: float = 0.05,
        on_failure: Literal["ignore", "worst"] = "ignore",
    ) -> None:
        warn_once("strategy.RegularizedEvolution", "nni.nas.strategy.RegularizedEvolution")
        if optimize_mode not in {"maximize", "minimize"}:
            raise ValueError(
                f"optimize_mode must be 'maximize' or 'minimize', got {optimize_mode!r}"
            )
        if on_failure not in {"ignore", "worst"}:
            raise ValueError(f"on_failure must be 'ignore' or 'worst', got {on_failure!r}")
        if sample_size >= population_size:
            raise ValueError(
                f"sample_size must be < population_size, got {sample_size} of {population_size}"
            )
        super().__init__(
            population_size=population_size, sample_size=sample_size, mutation_prob=mutation_prob
        )
        self._sign = 1 if optimize_mode == "maximize" else -1
        worst = [FailureHandler(metric=-self._sign * math.inf, retain_history=False)]
        self._middlewares = [
            *(worst if on_failure == "worst" else ()),
            SubmissionLimit(cycles),
        ]

    def _tournament(self, members: list[ScoredSample]) -> ScoredSample:
        return super()._tournament(
            [replace(member, metric=self._sign * member.metric) for member in members]
        )


class LegacyPolicyBasedRL(_WithMiddleware, PolicyBasedRL):
    """`PolicyBasedRL` of NNI 2.x: ends after `max_collect * trial_per_collect` models.

    Args:
        max_collect: number of updates of the policy; `max_collect * trial_per_collect` models are
            evaluated.
        trial_per_collect: models between two updates of the policy.
        policy_fn: function of a `SampleGame` that returns a policy, as `PolicyBasedRL` of
            `nni.nas.strategy` takes it, not one of tianshou; None for PPO.
    """

    def __init__(
        self,
        max_collect: int = 100,
        trial_per_collect: int = 20,
        policy_fn: Any = None,  # noqa: ANN401 - a function of another library in its time
    ) -> None:
        warn_once("strategy.PolicyBasedRL", "nni.nas.strategy.PolicyBasedRL")
        super().__init__(
            samples_per_update=trial_per_collect,
            policy_fn=policy_fn,
            update_kwargs={"batch_size": 64, "repeat": 5, "update_times": 1},
        )
        self._middlewares = [SubmissionLimit(max_collect * trial_per_collect)]
