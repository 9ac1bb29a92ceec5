"""Analyses of search spaces and results that need no running algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nni.hpo.objectives import Objective, Objectives, OutcomeLimit
from nni.hpo.pareto import pareto_front
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.ports import Importance, ImportanceMeter, TrialOutcome

_NAMES_LIMIT: Final = 100
"""Largest number of objectives of one front."""


@dataclass(frozen=True, slots=True)
class Front:
    """Trial ids of a Pareto front, and counts of infeasible and incomplete results."""

    trial_ids: tuple[str, ...]
    infeasible: int
    """Number of results that violate a limit."""
    incomplete: int
    """Number of results that lack a finite value for an objective."""


class Analyses:
    """Use case that computes hyperparameter importance from trials' results.

    Args:
        meter: measures importance.
    """

    def __init__(self, meter: ImportanceMeter) -> None:
        self._meter = meter

    async def importance(
        self, search_space: object, outcomes: Sequence[TrialOutcome], objective: Objective
    ) -> Importance:
        """Return each hyperparameter's share of the variance of the objective's metric."""
        return await self._meter.measure(search_space, outcomes, objective.metric, objective.mode)


def find_front(
    outcomes: Sequence[TrialOutcome],
    objectives: Sequence[Objective],
    limits: Sequence[OutcomeLimit],
) -> Front:
    """Return the Pareto front's trial ids, with counts of infeasible and incomplete results.

    Raises:
        InvalidArgumentError: there is no objective, or there are too many.
    """
    if not 1 <= len(objectives) <= _NAMES_LIMIT:
        raise InvalidArgumentError("objectives", f"must be 1 to {_NAMES_LIMIT}", len(objectives))
    wanted = Objectives(tuple(objectives), tuple(limits))
    feasible = [outcome for outcome in outcomes if wanted.excess(outcome.metric) == 0]
    complete = [
        (outcome.trial_id, losses)
        for outcome in feasible
        if (losses := wanted.losses(outcome.metric)) is not None
    ]
    best = pareto_front([losses for _, losses in complete])
    return Front(
        tuple(complete[position][0] for position in best),
        infeasible=len(outcomes) - len(feasible),
        incomplete=len(feasible) - len(complete),
    )
