"""Handles of explorations: their status and best models, and to pause, resume and stop them.

Nothing here needs torch, or opens what a strategy or a trial has written.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nni.experiment.client import ManagerClient
from nni.experiment.environment import experiment_environment
from nni.experiment.errors import NotFoundError, WrongStateError
from nni.experiment.records import state_name
from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from nni_wire.values import from_value

_SAMPLE: Final = "sample"
_DEFAULT: Final = "default"
_ARCHITECTURE: Final = "architecture"
"""Entry of the result of a one-shot search; see `nni.nas.execution.searched_architecture`."""
PAUSED: Final = "PAUSED"
"""State of an exploration whose concurrency is 0."""
_OVER: Final = frozenset({"STOPPED", "ERROR", "VIEWED"})
_DONE: Final = "DONE"
"""State of an exploration whose limit is reached; a larger one continues it."""


@dataclass(frozen=True, slots=True)
class ExplorationStatus:
    """Status of an exploration: state, parts, limits, number of trials by state, best, errors."""

    id: str
    """Id of its experiment."""
    name: str
    """Name of its experiment; empty: none."""
    state: str
    """`RUNNING`, `PAUSED`, `DONE`, ..."""
    strategy: str
    """Class of the strategy."""
    evaluator: str
    """Class of the evaluator."""
    model_format: str
    """Format in which candidates travel."""
    concurrency: int
    """Most trials at once; 0: paused."""
    limit: int | None
    """Most candidates; None for no limit."""
    trials: Mapping[str, int]
    """Number of candidates by the state of their trial."""
    best: float | None
    """Largest metric so far; None: none."""
    errors: tuple[str, ...]
    """Cause of `ERROR`, newest last."""


@dataclass(frozen=True, slots=True)
class ExploredModel:
    """Candidate's choices by label, and the final metric of its trial as reported."""

    trial_id: str
    """Id of its trial."""
    metric: Any
    """As reported: a number, or a dict with `default`."""
    sample: Mapping[str, Any]
    """Choice by label, as `model_context` takes it."""

    @property
    def value(self) -> float:
        """Metric as a number, `default` of a dict; the larger, the better; NaN if it is not one."""
        number = self.metric.get(_DEFAULT) if isinstance(self.metric, dict) else self.metric
        try:
            return float(number) if isinstance(number, (int, float)) else math.nan
        except OverflowError:  # an integer may have any number of digits
            return math.nan


class RemoteExploration:
    """Handle of an exploration of the services: status, best models, pause, resume, stop.

    Args:
        exploration_id: id of its experiment.
        client: connection to the services; its owner closes it.

    Examples:
        See `docs/nas-service.md`.
    """

    def __init__(self, exploration_id: str, client: ManagerClient) -> None:
        self.id = exploration_id
        self._client = client

    def status(self) -> ExplorationStatus:
        """Fetch the state, limits, trial counts, best metric and errors from the manager.

        Raises:
            NotFoundError: no experiment has this id, or it is no exploration.
        """
        return status_of(self._found())

    def _found(self) -> experiment_pb2.Experiment:
        found = self._client.get(self.id).experiment
        if not found.config.HasField("nas"):
            raise NotFoundError(
                f"experiment {self.id} is no exploration; see: nnictl experiment show {self.id}"
            )
        return found

    def top(self, limit: int = 1) -> list[ExploredModel]:
        """Return the best models, the largest metric first; those without a number are left out.

        Args:
            limit: number of models at most.

        Raises:
            NotFoundError: it is no exploration.
        """
        self._found()
        models = [
            explored_model(item.trial_id, from_value(item.value), _sample(item.parameters))
            for item in self._client.export(self.id)
        ]
        measured = [one for one in models if not math.isnan(one.value)]
        return sorted(measured, key=lambda one: one.value, reverse=True)[:limit]

    def fetch(self, folder: Path, trial_id: str | None = None) -> list[Path]:
        """Copy the files of a model, by default the best one, into a folder; return the paths.

        The trials leave them if the configuration has `save_models`.

        Args:
            folder: made if missing.
            trial_id: its trial; None: that of the best model.

        Raises:
            NotFoundError: there is no such model, or its trial has left no files.
            ConfigError: the folder cannot be written.
        """
        from nni.nas.experiment.model_files import fetch_model

        if trial_id is None:
            best = self.top(1)
            if not best:
                raise NotFoundError(f"exploration {self.id} has no model with a metric yet")
            trial_id = best[0].trial_id
        return fetch_model(self._client, self.id, trial_id, folder)

    def pause(self) -> None:
        """Start no more trials, while running ones continue; do nothing if paused; raise if over.

        Raises:
            WrongStateError: it was stopped, has failed, or has reached its limit.
        """
        found = self.status()
        if found.state in _OVER | {_DONE}:
            raise WrongStateError(
                f"exploration {self.id} is {found.state} and starts no trials; nothing to pause"
            )
        if found.state != PAUSED:
            self._client.update(self.id, trial_concurrency=0)

    def resume(self) -> None:
        """Resume after a pause, stop or error, with the same concurrency; raise in other states.

        Raises:
            WrongStateError: it is running.
        """
        found = self.status()
        if found.state == "ERROR":
            self._client.stop(self.id)
        if found.state in _OVER:
            self._client.resume(
                experiment_service_pb2.ResumeExperimentRequest(
                    experiment_id=self.id,
                    environment=experiment_environment(),
                    interpreter=sys.executable,
                )
            )
        elif found.concurrency > 0:
            remedy = f"; raise its limit with nnictl update trialnum {self.id} --value N"
            raise WrongStateError(
                f"exploration {self.id} is {found.state}, not paused or stopped"
                f"{remedy if found.state == _DONE else ''}"
            )
        if found.concurrency == 0:
            self._client.update(self.id, trial_concurrency=self._concurrency_before())

    def _concurrency_before(self) -> int:
        """Return the last concurrency above 0 in the log, 1 if there is none."""
        last = 1
        for item in self._client.events(self.id):
            event = item.event
            if event.HasField("experiment_created"):
                last = event.experiment_created.config.trial_concurrency or last
            elif event.HasField("budget_changed"):
                last = event.budget_changed.trial_concurrency or last
        return last

    def stop(self) -> None:
        """Stop the strategy and all trials; `resume` continues later."""
        self._found()
        self._client.stop(self.id)


def list_explorations(client: ManagerClient) -> list[ExplorationStatus]:
    """Return the status of all explorations, newest first.

    Args:
        client: connection to the services.
    """
    return [
        status_of(one)
        for one in client.experiments(include_stopped=True)
        if one.config.HasField("nas")
    ]


def status_of(found: experiment_pb2.Experiment) -> ExplorationStatus:
    """Return the status of an exploration's experiment; its state is PAUSED at concurrency 0."""
    config = found.config
    state = state_name(found.state)
    is_paused = config.trial_concurrency < 1 and state in {"RUNNING", "INITIALIZED"}
    return ExplorationStatus(
        id=found.id,
        name=config.experiment_name,
        state=PAUSED if is_paused else state,
        strategy=config.nas.strategy,
        evaluator=config.nas.evaluator,
        model_format=config.nas.model_format,
        concurrency=config.trial_concurrency,
        limit=config.max_trial_number if config.HasField("max_trial_number") else None,
        trials=dict(found.trial_counts),
        best=found.best_value if found.HasField("best_value") else None,
        errors=tuple(found.errors),
    )


def explored_model(trial_id: str, metric: object, sample: Mapping[str, Any]) -> ExploredModel:
    """Return a trial's choices and metric; those of a one-shot search are both in its result.

    Args:
        trial_id: id of the trial.
        metric: its result.
        sample: choices of its parameters; empty for a one-shot search.
    """
    found = metric.get(_ARCHITECTURE) if isinstance(metric, dict) and not sample else None
    if not isinstance(metric, dict) or not isinstance(found, dict):
        return ExploredModel(trial_id, metric, sample)
    measured = {name: value for name, value in metric.items() if name != _ARCHITECTURE}
    return ExploredModel(trial_id, measured, found)


def _sample(parameters: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a message of the generated code
    found = from_value(parameters)
    sample = found.get(_SAMPLE) if isinstance(found, dict) else None
    return sample if isinstance(sample, dict) else {}
