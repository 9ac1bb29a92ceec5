"""Base of Hyperband and BOHB: successive halving brackets whose jobs are trials."""

import copy
import json
import logging
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Final

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.advisors._halving import Bracket, Job, Round
from nni.hpo.checkpoint_folders import LOAD_KEY, SAVE_KEY, default_root
from nni.hpo.commands import CommandType, MetricType
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space

_logger = logging.getLogger(__name__)

BUDGET_KEY: Final = "TRIAL_BUDGET"
"""Key of the budget in every configuration that a trial gets."""

_STOPPED: Final = frozenset({"EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED"})
"""Events of trials that were ended, and so did not fail by themselves."""

RESERVED: Final = frozenset({BUDGET_KEY, LOAD_KEY, SAVE_KEY})
"""Keys that the advisor adds to the parameters of the search space."""


@dataclass(slots=True)
class _Running:
    """Job whose trial has not ended."""

    job: Job
    loss: float = math.inf


class CheckpointFolders:
    """Checkpoint folders of jobs, and their release when no later job loads them."""

    def __init__(self) -> None:
        self._kept: dict[int, set[str]] = {}
        self._released: list[str] = []

    def of(self, job: Job) -> dict[str, JsonValue]:
        """Record a job's folder; return parameters with it and, if promoted, the folder to load."""
        self._kept.setdefault(job.bracket, set()).add(job.id)
        folders: dict[str, JsonValue] = {SAVE_KEY: self._folder(job.id)}
        if job.source is not None:
            folders[LOAD_KEY] = self._folder(job.source)
        return folders

    def end(self, job: Job, *, bracket_finished: bool) -> None:
        """Release the folder that an ended trial loaded, or all folders of a finished bracket."""
        kept = self._kept[job.bracket]
        over = {name for name in kept if bracket_finished or name == job.source}
        kept -= over
        self._released += [self._folder(name) for name in sorted(over)]
        if bracket_finished:
            del self._kept[job.bracket]

    def released(self) -> list[str]:
        """Return the folders released since the last call."""
        released, self._released = self._released, []
        return released

    def _folder(self, name: str) -> str:
        return str(default_root().expanduser() / name)


class HalvingAdvisor(MsgDispatcherBase):
    """Advisor that runs successive halving brackets in turn, or several at a time.

    A promoted configuration gets a new trial with a larger budget, which trains from the start
    unless there are checkpoints. Ranking is by the final result, which counts however its trial
    ended; a trial without one ranks last. Intermediate results have no effect.

    Args:
        optimize_mode: `maximize` or `minimize`.
        parallel: whether a request that the open brackets cannot serve opens another bracket,
            instead of waiting for results.
        asynchronous: whether configurations are promoted before their round is complete.
        checkpoints: whether trials get a folder to save a checkpoint to, and one to load.
    """

    def __init__(
        self,
        optimize_mode: str,
        *,
        parallel: bool,
        asynchronous: bool = False,
        checkpoints: bool = False,
    ) -> None:
        super().__init__()
        self._mode = checked_optimize_mode(optimize_mode)
        self._parallel = parallel
        self._asynchronous = asynchronous
        self._folders = CheckpointFolders() if checkpoints else None
        self._opened = 0
        self._open: dict[int, Bracket] = {}
        self._running: dict[str, _Running] = {}
        self._waiting = 0

    @abstractmethod
    def rounds(self, number: int) -> tuple[Round, ...]:
        """Return the rounds of bracket `number`: how many configurations at which budget.

        Args:
            number: of the bracket, from 0 without end.

        Returns:
            Its rounds in order, each with its number of configurations and their budget.
        """

    @abstractmethod
    def new_configuration(self) -> JsonValue:
        """Return a new configuration for a bracket's first round; a subclass must override this.

        Returns:
            The configuration, without its budget.
        """

    def new_result(self, budget: int, configuration: JsonValue, loss: float) -> None:
        """Handle the loss of a configuration at a budget, for a subclass; the default ignores it.

        Args:
            budget: steps that the trial trained for.
            configuration: of the trial, without its budget.
            loss: value of the objective, smaller is better; infinite without a result.
        """

    def new_failure(self, configuration: JsonValue) -> None:
        """Handle a failed trial, for a subclass; the default ignores it.

        Args:
            configuration: of the trial, which has ended by itself and without a number.
        """

    def handle_request_trial_jobs(self, data: int) -> None:
        """Add to the number of waiting requests, and start the jobs that are ready.

        Args:
            data: number of trials to start.
        """
        self._waiting += data
        self._serve()

    def handle_report_metric_data(self, data: dict[str, JsonValue]) -> None:
        """Keep a running trial's first final loss; ignore intermediate ones, raise for others."""
        if data["type"] == MetricType.FINAL:
            running = self._running.get(data["parameter_id"])
            loss = loss_of(data["value"], self._mode)
            if running is not None and loss is not None and running.loss == math.inf:
                running.loss = loss
        elif data["type"] != MetricType.PERIODICAL:
            raise ValueError(
                f"type of a metric must be {MetricType.PERIODICAL} or {MetricType.FINAL}, "
                f"got {data['type']!r}"
            )

    def handle_trial_end(self, data: dict[str, JsonValue]) -> None:
        """Enter a trial's loss into its bracket, release its checkpoints, start waiting jobs."""
        started = json.loads(data["hyper_params"])
        running = self._running.pop(started["parameter_id"], None)
        if running is None:
            return  # a duplicate report
        job, loss = running.job, running.loss
        configuration = without_budget(started["parameters"])
        self.new_result(job.budget, configuration, loss)
        if loss == math.inf and data["event"] not in _STOPPED:
            self.new_failure(configuration)
        bracket = self._open[job.bracket]
        bracket.end(job, configuration, loss)
        if bracket.finished:
            del self._open[job.bracket]
        if self._folders is not None:
            self._folders.end(job, bracket_finished=bracket.finished)
        self._serve()

    def released_checkpoints(self) -> list[str]:
        """Return folders released since the last call, which no later trial loads.

        Returns:
            Absolute paths; the next call does not repeat them.
        """
        return [] if self._folders is None else self._folders.released()

    def _serve(self) -> None:
        while self._waiting:
            job = self._next_job()
            if job is None:
                return
            self._waiting -= 1
            self._start(job)

    def _next_job(self) -> Job | None:
        """Take the next job of an open bracket, or open a new one; None to wait for a result."""
        for bracket in self._open.values():
            job = bracket.next_job()
            if job is not None:
                return job
        if self._open and not self._parallel:
            return None
        rounds = self.rounds(self._opened)
        bracket = Bracket(self._opened, rounds, asynchronous=self._asynchronous)
        self._open[self._opened] = bracket
        self._opened += 1
        return bracket.next_job()

    def _start(self, job: Job) -> None:
        configuration = job.configuration
        if configuration is None:
            configuration = self.new_configuration()
        self._running[job.id] = _Running(job)
        parameters = {**copy.deepcopy(configuration), BUDGET_KEY: job.budget}
        if self._folders is not None:
            parameters |= self._folders.of(job)
        self.send(CommandType.NewTrialJob, {"parameter_id": job.id, "parameters": parameters})


def without_budget(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the parameters of a trial without the keys that the advisor added."""
    return {key: value for key, value in parameters.items() if key not in RESERVED}


def flat_space(search_space: object, algorithm: str) -> Space:
    """Return a parsed flat space, in which no name is reserved.

    Raises:
        ValueError: the space is malformed, nested, or uses a reserved name.
    """
    return parse_space(
        search_space, algorithm=algorithm, nested=False, reserved=RESERVED, priors=False
    )
