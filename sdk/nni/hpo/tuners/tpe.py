"""TPE: tree-structured Parzen estimator.

Two Parzen estimators model the densities of good results and of the rest; a proposal maximises
their ratio, which the expected improvement grows with.

Source: Bergstra, Bardenet, Bengio and Kegl, Algorithms for Hyper-Parameter Optimization, NIPS 2011,
section 4; for several objectives Ozaki et al., see `fronts`.

Departures, each measured by `tests/benchmarks/bench_tpe_quality.py`:
- The parameters that are always active together are modelled together, by kernels over all of them;
  a branch of a choice has a model of its own, made from the trials that took it.
- A good kernel's width on a column is the distance to the farther of its two good neighbours there,
  but at least a width that shrinks with the number of trials: wide steps first, fine ones later.
  Kernels of the other trials are narrower, so that they push proposals away from tried points only.
- Better ranks weigh more. Of equal results the newest represents all, so that a plateau does not
  displace better results beyond it. Only the best few hundred of the other trials have kernels; the
  prior represents the rest, which bounds the time of a proposal.
- Running trials whose made-up result is good displace no known good result, and together weigh as
  much as one.
- While other trials run, proposals keep away from them, and most candidates mix good points, column
  by column: with ten concurrent trials few depend on each other, so each has to go farther.
- Integers are ordered. Old trials do not fade. Ten results, not twenty, precede the model.
"""

import logging
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, ClassVar, Final

import numpy as np

from nni.hpo.base import EARLY_STOPPED, FAILED, Tuner, samples
from nni.hpo.encoding.columns import Level, Row, configuration_of, levels_of, rows_of
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.models.acceptance import THINNED, accepted
from nni.hpo.models.learning_curves import LearningCurves
from nni.hpo.objectives import Objectives, is_numeric, objectives_of
from nni.hpo.registry.arguments import Mode, Seed, fields_of
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import MANY, FloatRange, IntRange, OneOf
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import contains, parse_space, place
from nni.hpo.tuners._repair import repaired
from nni.hpo.tuners.density.level_model import (
    CANDIDATES,
    GOOD_FACTOR,
    GOOD_LIMIT,
    DensitySettings,
    LevelModel,
    Pending,
)
from nni.hpo.tuners.density.liars import LIARS, Extent
from nni.hpo.tuners.density.rankings import Outcome

_logger = logging.getLogger(__name__)

_TRIES: Final = 8
"""Sets of candidates for a proposal that keeps the constraints; the last one is repaired."""

STARTUP_TRIALS: Final = 10
"""Results before which proposals are draws from the prior."""


_LEAST_PRIOR_WEIGHT: Final = 1e-12
"""Stands for a `prior_weight` of 0, of which a density has no logarithm."""

_LIARS_OF_NNI_3: Final = {"best": "min", "worst": "max", "mean": "mean"}
"""Names of the made-up results in NNI 3.0, and ours."""


@dataclass(frozen=True, slots=True)
class TpeArguments:
    """Settings of the model under the names that NNI 3.0 has for them.

    The defaults are those of `TPETuner`, which differ from those of NNI 3.0.

    Args:
        constant_liar_type: `best`, `worst` or `mean` of the losses known so far, which running
            trials get as a result; None for no such result. If it is given it takes precedence over
            `parallel_optimize` and `constant_liar_type` of `TPETuner`.
        n_startup_jobs: results before which proposals are draws from the prior.
        n_ei_candidates: draws of the good density that compete in one proposal.
        linear_forgetting: number of newest results that keep their full weight, and upper limit of
            the number of good ones; the weight of older results falls linearly with their age.
        prior_weight: weight of the prior in both densities, where 1 is that of a result.
        gamma: of n results `ceil(gamma * sqrt(n))` count as good.
    """

    constant_liar_type: Annotated[str | None, OneOf(*_LIARS_OF_NNI_3)] = None
    n_startup_jobs: Annotated[int, IntRange(0, MANY)] = STARTUP_TRIALS
    n_ei_candidates: Annotated[int, IntRange(1, MANY)] = CANDIDATES
    linear_forgetting: Annotated[int | None, IntRange(1, MANY)] = None
    prior_weight: Annotated[float, FloatRange(0)] = 1.0
    gamma: Annotated[float, FloatRange(0, open_low=True)] = GOOD_FACTOR

    @property
    def densities(self) -> DensitySettings:
        """Settings of the model, a prior weight of 0 replaced by the least one."""
        return DensitySettings(
            good_factor=self.gamma,
            good_limit=self.linear_forgetting or GOOD_LIMIT,
            candidates=self.n_ei_candidates,
            prior_weight=max(self.prior_weight, _LEAST_PRIOR_WEIGHT),
            newest=self.linear_forgetting,
        )


@dataclass(frozen=True, slots=True)
class _Running:
    """Running trial: its configuration, and its rows in the models."""

    configuration: JsonValue
    rows: list[Row]


@algorithm(
    "TPE",
    use_when="In general; few trials, any space, one objective or several.",
    parallel="All are served; proposals keep away from running trials.",
    documented_as="nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner",
    priors=True,
    extra="hpo",
)
class TPETuner(Tuner):
    """Tree-structured Parzen estimator, for one objective or several.

    For several objectives give `optimize_mode` of the search as a dict of metric to mode.

    Args:
        optimize_mode: `maximize` or `minimize`, for a single objective.
        parallel_optimize: whether running trials count with a made-up result (constant liar);
            otherwise they only keep proposals away a little.
        constant_liar_type: the made-up result: the `min`, `max` or `mean` of the losses known so
            far. `max` and `mean` spread the proposals; `min` counts running trials as good and
            helps least.
        seed: of all random draws; None for another one in every process.
        tpe_args: settings of the model by the names of NNI 3.0, see `TpeArguments`.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-10, 10]}}
        >>> found = optimize(lambda p: (p["x"] - 2) ** 2, space, tuner="TPE", trials=60, seed=0)
        >>> abs(found.best_parameters["x"] - 2) < 0.1
        True
    """

    multi_objective: ClassVar[bool] = True
    imports_failures: ClassVar[bool] = True
    learns_stopped: ClassVar[bool] = True

    def __init__(
        self,
        optimize_mode: Mode = "minimize",
        parallel_optimize: bool = False,  # noqa: FBT001, FBT002 - documented signature
        constant_liar_type: Annotated[str, OneOf(*LIARS)] = "min",
        seed: Seed = None,
        tpe_args: Annotated[Mapping[str, JsonValue] | None, fields_of(TpeArguments)] = None,
    ) -> None:
        given = dict(tpe_args or {})
        model = TpeArguments(**given)
        if "constant_liar_type" in given:
            liar = model.constant_liar_type
            parallel_optimize = liar is not None
            constant_liar_type = _LIARS_OF_NNI_3[liar] if liar else constant_liar_type
        self._densities = model.densities
        self._startup = model.n_startup_jobs
        self._objectives = objectives_of(optimize_mode)
        self._parallel = parallel_optimize
        self._liar = constant_liar_type
        self._rng = np.random.default_rng(seed)
        self._prior = Random(seed)
        self._space = Space(())
        self._levels: tuple[Level, ...] = ()
        self._forget()
        self._running: dict[int, _Running] = {}
        self._curves = LearningCurves()

    def set_objectives(self, objectives: Objectives) -> None:
        """Set the objectives; called before the first space, if `multi_objective` is true."""
        self._objectives = objectives
        self._forget()

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set a search space and its levels; keep observations and running trials in it."""
        running = [(key, trial.configuration) for key, trial in self._running.items()]
        known, failed, self._running = self._observed, self._failed, {}
        self._space = parse_space(search_space, algorithm="TPE")
        self._levels = levels_of(self._space)
        self._forget()
        self._recall(known, running, failed)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return a suggestion of the model, and register it as a running trial."""
        del kwargs
        configuration = self.suggest()
        self._running[parameter_id] = self._started(configuration)
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Remove a trial from the running ones; learn its outcome, or that it has none."""
        del kwargs
        self._running.pop(parameter_id, None)
        outcome = self._outcome(value)
        if outcome is not None and self._has_curves:
            self._curves.finish(parameter_id, outcome.losses[0])
        self._learn(parameters, outcome)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Process the end of a trial; learn a failure, or the estimated loss of a stopped one.

        Args:
            parameter_id: of the trial.
            success: whether it has completed.
            **kwargs: `event` and `intermediate`, see `Tuner.trial_end`.
        """
        del success
        trial = self._running.pop(parameter_id, None)
        losses = self._intermediate_losses(kwargs.get("intermediate"))
        self._curves.end(parameter_id, losses)
        if trial is None:
            return  # it has a result
        if kwargs.get("event") == FAILED:
            self._learn(trial.configuration, None)
        elif kwargs.get("event") == EARLY_STOPPED:
            self._learn_stopped(trial.configuration, losses)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn each sample, NaN as a failure; skip those outside the space or without a number."""
        for sample in samples(data):
            outcome = self._outcome(sample.value)
            if outcome is None and not is_numeric(sample.value):
                _logger.warning("TPE skips an imported sample without a number: %.200r", sample)
            else:
                self._learn(sample.parameter, outcome)

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        """Record curves of completed trials, and learn the estimated losses of stopped ones."""
        for curve in curves:
            losses = self._intermediate_losses(curve["intermediate"])
            outcome = self._outcome(curve["value"])
            if curve["value"] is None:
                self._learn_stopped(curve["parameter"], losses)
            elif outcome is not None:
                self._curves.complete(losses, outcome.losses[0])

    def suggest(self, *, from_prior: bool = False) -> dict[str, JsonValue]:
        """Return a configuration by the model, at first by the prior; register no trial for it.

        Args:
            from_prior: whether to draw from the search space, without a look at the results.

        Returns:
            The configuration.
        """
        if from_prior or len(self._observed) < self._startup:
            return self._draw()
        return self._proposal(self._pending())

    def _draw(self) -> dict[str, JsonValue]:
        """Return a draw of the prior; once trials failed, one accepted by its success chance."""
        drawn = self._space.draw(self._prior)
        if not self._failed:
            return drawn
        draws = [drawn, *(self._space.draw(self._prior) for _ in range(THINNED - 1))]
        chances = [
            sum(self._models[row.level].log_success(row) for row in self._rows(one))
            for one in draws
        ]
        return accepted(draws, chances, self._prior)

    def state(self) -> dict[str, JsonValue]:
        """Return random states, observations and running trials as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        return {
            "rng": self._rng.bit_generator.state,
            "prior": random_state(self._prior),
            "observed": [[known, _to_json(outcome)] for known, outcome in self._observed],
            "failed": [[configuration, place] for configuration, place in self._failed],
            "running": [[key, trial.configuration] for key, trial in self._running.items()],
            "curves": self._curves.state(),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore random states, then learn observations and running trials of a state again.

        Args:
            state: what `state` of a tuner with the same arguments and search space returned.
        """
        self.load_draws(state)
        self._running = {}
        self._forget()
        known = [
            (configuration, _from_json(outcome)) for configuration, outcome in state["observed"]
        ]
        # States of older versions have no failed trials.
        self._recall(known, state["running"], state.get("failed", []))
        self._curves.load_state(state.get("curves", [[], []]))

    def load_draws(self, state: dict[str, JsonValue]) -> None:
        """Restore the random state of a state; observations stay.

        Args:
            state: what `state` returned; only its random generators are read.
        """
        restore_random(self._prior, state["prior"])
        self._rng.bit_generator.state = state["rng"]

    def _recall(
        self,
        known: Iterable[tuple[JsonValue, Outcome]],
        running: Iterable[tuple[int, JsonValue]],
        failed: Iterable[tuple[JsonValue, int]],
    ) -> None:
        """Learn earlier results, failed and running trials that lie in the space."""
        waiting = deque(failed)
        for index, (configuration, outcome) in enumerate(known):
            while waiting and waiting[0][1] <= index:
                self._learn(waiting.popleft()[0], None)
            self._learn(configuration, outcome)
        for configuration, _ in waiting:
            self._learn(configuration, None)
        for parameter_id, configuration in running:
            if contains(self._space, configuration):
                self._running[parameter_id] = self._started(configuration)

    def _started(self, configuration: JsonValue) -> _Running:
        return _Running(configuration, self._rows(configuration))

    def _rows(self, configuration: JsonValue) -> list[Row]:
        return rows_of(self._levels, place(self._space, configuration))

    def _forget(self) -> None:
        """Clear all observations; make models for the current space and objectives."""
        objectives = len(self._objectives.items)
        self._models = [LevelModel(level, objectives, self._densities) for level in self._levels]
        self._observed: list[tuple[JsonValue, Outcome]] = []
        self._failed: list[tuple[JsonValue, int]] = []
        """Failed configurations, each with the number of observations before it."""
        self._extent = Extent()

    def _outcome(self, value: JsonValue) -> Outcome | None:
        """Return losses and constraint violation of a report; None if a loss is missing."""
        losses = self._objectives.losses(value)
        if losses is None:
            return None
        # Infinite: a metric with a limit is missing. JSON has no infinity.
        return Outcome(losses, min(self._objectives.excess(value), sys.float_info.max))

    @property
    def _has_curves(self) -> bool:
        """True if intermediate results can be compared: of one objective without limits."""
        return not (self._objectives.several or self._objectives.limits)

    def _intermediate_losses(self, reports: object) -> list[float | None]:
        """Return losses of intermediate results; empty with several objectives or limits."""
        if not isinstance(reports, list) or not self._has_curves:
            return []
        found = map(self._objectives.losses, reports)
        return [None if losses is None else losses[0] for losses in found]

    def _learn_stopped(self, configuration: JsonValue, losses: list[float | None]) -> None:
        """Learn the estimated loss of a stopped trial, if it can be compared with others."""
        estimate = self._curves.estimate(losses)
        if estimate is not None:
            self._learn(configuration, Outcome((estimate,)))

    def _learn(self, configuration: JsonValue, outcome: Outcome | None) -> None:
        """Record a trial, a failed one if `outcome` is None; log and drop it outside the space."""
        try:
            placed = place(self._space, configuration)
        except ValueError as error:
            _logger.warning("TPE drops a result outside the search space: %s", error)
            return
        if outcome is None:
            self.learn_failure(configuration, placed)
        else:
            self._keep(configuration, placed, outcome)

    def learn_failure(self, configuration: JsonValue, placed: Mapping[str, JsonValue]) -> None:
        """Record a failed configuration, which is placed in the search space already.

        Args:
            configuration: as it was proposed or imported.
            placed: its active parameters by their full names, as the space's `place` returns them.
        """
        for row in rows_of(self._levels, placed):
            self._models[row.level].add_failure(row)
        self._failed.append((configuration, len(self._observed)))

    def learn(self, configuration: JsonValue, placed: Mapping[str, JsonValue], loss: float) -> None:
        """Record the loss of a configuration that is placed in the search space already.

        Args:
            configuration: as it was proposed or imported.
            placed: its active parameters by their full names, as the space's `place` returns them.
            loss: value of the single objective; smaller is better.
        """
        self._keep(configuration, placed, Outcome((loss,)))

    def _keep(
        self, configuration: JsonValue, placed: Mapping[str, JsonValue], outcome: Outcome
    ) -> None:
        for row in rows_of(self._levels, placed):
            self._models[row.level].add(row, outcome)
        self._observed.append((configuration, outcome))
        self._extent.add(outcome)

    def _pending(self) -> dict[int, Pending]:
        """Return the running trials by level, with the made-up outcome of the liar if it is on."""
        rows: dict[int, list[Row]] = {}
        for trial in self._running.values():
            for row in trial.rows:
                rows.setdefault(row.level, []).append(row)
        lie = self._extent.lie(self._liar) if self._parallel else None
        return {level: Pending(found, lie) for level, found in rows.items()}

    def _proposal(self, pending: Mapping[int, Pending]) -> dict[str, JsonValue]:
        """Return the proposal of the models, repaired if all break a constraint."""
        for _ in range(_TRIES):
            rows: dict[int, Row] = {}
            self._choose(self._levels[0], rows, pending)
            proposal = configuration_of(self._levels, rows)
            if self._space.allows(proposal):
                return proposal
        return repaired(self._space, proposal, self._prior)

    def _choose(self, level: Level, rows: dict[int, Row], pending: Mapping[int, Pending]) -> None:
        """Add the row of a level to `rows`, then those of the branches that it opens."""
        allowed = None
        if self._space.rules:
            # A constraint on parameters that are not chosen yet holds, as if they were inactive.
            def allowed(row: Row) -> bool:
                partial = configuration_of(self._levels, {**rows, level.index: row})
                return self._space.allows(partial)

        row = self._models[level.index].propose(
            self._rng, pending.get(level.index), allowed, crowded=bool(self._running)
        )
        rows[level.index] = row
        for column, option in zip(level.choices, row.options, strict=True):
            branch = column.branches[option]
            if branch is not None:
                self._choose(branch, rows, pending)


def _to_json(outcome: Outcome) -> JsonValue:
    """Return an outcome as a number if it has one loss and no violation, else as a list."""
    if outcome.excess > 0 or len(outcome.losses) > 1:
        return [list(outcome.losses), outcome.excess]
    return outcome.losses[0]


def _from_json(value: JsonValue) -> Outcome:
    """Return the outcome that `_to_json` wrote."""
    if isinstance(value, list):
        return Outcome(tuple(value[0]), float(value[1]))
    return Outcome((value,))
