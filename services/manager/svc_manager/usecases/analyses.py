"""Analyses of an experiment's results; the dispatcher computes them."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import InvalidArgumentError, UnavailableError
from svc_common.large_work import off_loop
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.views import trial_view
from svc_manager.domain.trial import Trial
from svc_manager.ports import Analyst

DEFAULT_METRIC: Final = "default"
"""Name of the metric of a report that is a plain number."""
CONSTRAINTS_KEY: Final = "_constraints"
"""The only key of a search space that is not a hyperparameter."""
_OUTCOMES_AT_ONCE: Final = 50_000
"""Most trials in a request to the dispatcher: with 10 metrics each, 700,000 parts."""
_CONVERTED_AT_ONCE: Final = 1_000
"""Trials to convert before yielding to other tasks of the manager: a few milliseconds."""
_CHECKED_AT_ONCE: Final = 2_000
"""Most configurations in a request to the dispatcher."""
_SAMPLE_LIMIT: Final = 2000
"""Maximum trials from which importance is computed, to limit the size of the request."""


@dataclass(frozen=True, slots=True)
class Importance:
    """Share of an objective's variance that each hyperparameter explains."""

    objective: metric_pb2.Objective
    found: pb.MeasureImportanceResponse


@dataclass(frozen=True, slots=True)
class Front:
    """Pareto front of an experiment's trials, with counts of the results left out."""

    objectives: Sequence[metric_pb2.Objective]
    trials: Sequence[trial_pb2.Trial]
    """In order of creation."""
    finished: int
    """Number of trials with a result."""
    infeasible: int
    """Number of results beyond a limit of the configuration."""
    incomplete: int
    """Number of results without a finite number for some objective."""


class Analyses:
    """Use cases that compute importance and Pareto front of an experiment by the dispatcher.

    Args:
        registry: registry of the actors.
        large_values: store of large values.
        analyst: the dispatcher.
        outcomes_at_once: most trials in one request for a front.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        large_values: LargeValues,
        analyst: Analyst,
        outcomes_at_once: int = _OUTCOMES_AT_ONCE,
    ) -> None:
        self._outcomes_at_once = outcomes_at_once
        self._registry = registry
        self._large_values = large_values
        self._analyst = analyst

    async def importance(self, experiment_id: str, metric: str = "") -> Importance:
        """Return hyperparameters' importance for a metric, from 2,000 finished trials at most.

        Args:
            experiment_id: the experiment.
            metric: empty: that of the first objective.

        Raises:
            FailedPreconditionError: there are too few results.
        """
        actor = await self._registry.find(experiment_id)
        config = actor.view().config
        objective = _chosen(_objectives(actor, config), metric)
        finished = _finished(actor)
        step = max(1.0, len(finished) / _SAMPLE_LIMIT)
        chosen = [finished[int(place * step)] for place in range(int(len(finished) / step))]
        request = pb.MeasureImportanceRequest(
            search_space=await self._large_values.load(config.search_space), objective=objective
        )
        for trial in chosen:
            outcome = _outcome(trial)
            outcome.parameters.MergeFromString(trial.parameters)
            outcome.parameters.CopyFrom(await self._large_values.load(outcome.parameters))
            request.outcomes.append(outcome)
        return Importance(objective, await self._analyst.importance(request))

    async def front(
        self, experiment_id: str, objectives: Sequence[metric_pb2.Objective] = ()
    ) -> Front:
        """Send finished trials to the dispatcher; return their Pareto front and counts of the rest.

        Args:
            experiment_id: the experiment.
            objectives: empty: those of the configuration.
        """
        actor = await self._registry.find(experiment_id)
        config = actor.view().config
        wanted = list(objectives) or _objectives(actor, config)
        finished = _finished(actor)
        asked = pb.FindParetoFrontRequest(objectives=wanted, constraints=config.constraints)
        found = await self._front(asked, finished)
        best = set(found.trial_ids)
        views = [_view(actor, trial) for trial in finished if trial.id in best]
        for view in views:
            view.parameters.CopyFrom(await self._large_values.load(view.parameters))
        return Front(wanted, views, len(finished), found.infeasible, found.incomplete)

    async def _front(
        self, asked: pb.FindParetoFrontRequest, finished: Sequence[Trial]
    ) -> pb.FindParetoFrontResponse:
        """Return the front of trials: the front of the fronts of pieces that one message can hold.

        Args:
            asked: objectives and constraints.
            finished: the trials.
        """
        if len(finished) <= self._outcomes_at_once:
            return await self._analyst.front(await _with_outcomes(asked, finished))
        best: set[str] = set()
        infeasible = incomplete = 0
        for start in range(0, len(finished), self._outcomes_at_once):
            found = await self._front(asked, finished[start : start + self._outcomes_at_once])
            best.update(found.trial_ids)
            infeasible += found.infeasible
            incomplete += found.incomplete
        candidates = [trial for trial in finished if trial.id in best]
        merged = await self._analyst.front(await _with_outcomes(asked, candidates))
        return pb.FindParetoFrontResponse(
            trial_ids=merged.trial_ids, infeasible=infeasible, incomplete=incomplete
        )


async def _with_outcomes(
    asked: pb.FindParetoFrontRequest, trials: Sequence[Trial]
) -> pb.FindParetoFrontRequest:
    """Return a copy of a request with trials' results added, yielding to other tasks meanwhile."""
    request = pb.FindParetoFrontRequest()
    request.CopyFrom(asked)
    for start in range(0, len(trials), _CONVERTED_AT_ONCE):
        request.outcomes.extend(map(_outcome, trials[start : start + _CONVERTED_AT_ONCE]))
        await asyncio.sleep(0)  # other tasks of the manager come first
    return request


class ConstraintChecker:
    """Checker of users' parameters and samples against the constraints of a search space.

    Args:
        large_values: store of large values.
        analyst: the dispatcher.
    """

    def __init__(self, large_values: LargeValues, analyst: Analyst) -> None:
        self._large_values = large_values
        self._analyst = analyst

    async def check(self, actor: ExperimentActor, parameters: value_pb2.Value) -> None:
        """Raise InvalidArgumentError if parameters break a constraint of the search space.

        Raises:
            InvalidArgumentError: it breaks a constraint; the message names it.
            UnavailableError: there are constraints, and the dispatcher cannot be reached.
        """
        (broken,) = await self._broken(actor, [parameters])
        if broken:
            raise InvalidArgumentError(
                "parameters", f"must keep the constraint {broken} of the search space"
            )

    async def warnings(self, actor: ExperimentActor, data: value_pb2.Value) -> list[str]:
        """Return one warning that counts samples breaking a constraint; empty: none, or unchecked.

        The algorithm skips them.
        """
        parameters = await off_loop(data.ByteSize(), _parameters_of, data)
        try:
            broken = [text for text in await self._broken(actor, parameters) if text]
        except UnavailableError:
            return []  # the algorithm's log names them
        if not broken:
            return []
        warning = (
            f"{len(broken)} of {len(parameters)} samples break a constraint of the search space "
            f"and are left out; the first of them {broken[0]}"
        )
        return [warning]

    async def _broken(
        self, actor: ExperimentActor, configurations: Sequence[value_pb2.Value]
    ) -> Sequence[str]:
        stored = actor.view().config.search_space
        space = await self._large_values.load(stored)
        # The size of a value is as slow as its encoding; a value that is no blob is small.
        if not await off_loop(stored.blob_value.size_bytes, _has_constraints, space):
            return [""] * len(configurations)
        broken: list[str] = []
        for start in range(0, len(configurations), _CHECKED_AT_ONCE):
            request = pb.CheckConfigurationsRequest(search_space=space)
            await asyncio.sleep(0)  # one large copy at a time
            request.configurations.extend(configurations[start : start + _CHECKED_AT_ONCE])
            await asyncio.sleep(0)
            broken += await self._analyst.broken(request)
        return broken


def _parameters_of(samples: value_pb2.Value) -> list[value_pb2.Value]:
    """Return the value under `parameter` of each sample in a list; skip samples without one."""
    return [
        entry.value
        for item in samples.list_value.items
        for entry in item.map_value.entries
        if entry.key == "parameter"
    ]


def _has_constraints(space: value_pb2.Value) -> bool:
    return any(entry.key == CONSTRAINTS_KEY for entry in space.map_value.entries)


def _finished(actor: ExperimentActor) -> list[Trial]:
    trials: Iterable[Trial] = actor.experiment.trials.values()
    return [trial for trial in trials if trial.final is not None and not trial.live]


def _outcome(trial: Trial) -> pb.Outcome:
    outcome = pb.Outcome(trial_id=trial.id)
    if trial.final is not None:
        outcome.metric.MergeFromString(trial.final.value)
    return outcome


def _objectives(
    actor: ExperimentActor, config: config_pb2.ExperimentConfig
) -> list[metric_pb2.Objective]:
    """Return the configured objectives; none: the default metric in the resolved direction."""
    if config.objectives:
        return list(config.objectives)
    mode = actor.experiment.optimize_mode
    number = metric_pb2.OPTIMIZE_MODE_MAXIMIZE if mode is None else mode.value
    return [metric_pb2.Objective(metric=DEFAULT_METRIC, mode=number)]  # type: ignore[arg-type] # the contract's numbers


def _chosen(objectives: list[metric_pb2.Objective], metric: str) -> metric_pb2.Objective:
    for objective in objectives:
        if metric in {"", objective.metric}:
            return objective
    return metric_pb2.Objective(metric=metric, mode=objectives[0].mode)


def _view(actor: ExperimentActor, trial: Trial) -> trial_pb2.Trial:
    return trial_view(trial, actor.experiment.directory, "")
