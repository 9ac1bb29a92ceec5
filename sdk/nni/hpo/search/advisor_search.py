"""In-process search by an advisor: ASHA, Hyperband, BOHB, or a custom class.

As in an experiment, the advisor decides about the next configuration, its budget (`TRIAL_BUDGET`),
its checkpoint, and early stopping.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Final, TypeVar

from nni.errors import NoMoreTrialError
from nni.hpo import commands
from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.checkpoint_folders import LOAD_KEY, SAVE_KEY
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import DEFAULT_METRIC, Objectives
from nni.hpo.registry.factory import create
from nni.hpo.search.advisor_driver import AdvisorAlgorithmDriver
from nni.hpo.search.driver import MetricCommand, TrialEndCommand
from nni.hpo.search.outcomes import FrontPoint, Outcomes, StudyTrial
from nni.hpo.search.stopping_rules import StoppingMonitor, StoppingRule
from nni.hpo.space.feasibility import broken_constraints

_T = TypeVar("_T")

_connection_lock: Final = RLock()
"""Held while an advisor runs: a process has one port for commands of advisors."""


class AdvisorSearch:
    """Ask-and-tell search and early stopper by an advisor.

    Methods may be called from several threads. `close` removes the folder of checkpoints.

    Args:
        advisor: an advisor without a space.
        search_space: the space in JSON.
        objectives: objectives that compare results.
        first: configurations to evaluate before any proposal of the advisor.
        known: samples `{"parameter", "value"}` of earlier searches.
        rules: stopping rules; any of them ends the search.

    Raises:
        ValueError: the advisor rejects the space, or a first configuration is infeasible.
    """

    def __init__(
        self,
        advisor: MsgDispatcherBase,
        search_space: JsonValue,
        objectives: Objectives,
        *,
        first: Sequence[JsonValue] = (),
        known: Sequence[JsonValue] = (),
        rules: Sequence[StoppingRule] = (),
    ) -> None:
        self._space = search_space
        self._check_first(first)
        metric = objectives.items[0].metric
        own = objectives.several or metric == DEFAULT_METRIC
        self._driver = AdvisorAlgorithmDriver(advisor, {}, self._receive, None if own else metric)
        self._monitor = StoppingMonitor(rules, objectives)
        self._outcomes = Outcomes(objectives)
        self._first = deque(first)
        self._ready: deque[tuple[int, Any]] = deque()
        self._requested = 0
        self._promised = 0
        self._exhausted = False
        self._failure = ""
        self._open: dict[int, tuple[StudyTrial, int | None]] = {}
        """Unfinished trials with their id for the advisor; None for initial configurations."""
        self._asked = 0
        self._stopped: set[str] = set()
        self._folder: TemporaryDirectory[str] | None = None
        self._call(lambda: self._driver.initialize(search_space))
        if known:
            self._call(lambda: self._driver.import_data(list(known)))
            self._check()

    def ask(self) -> StudyTrial:
        """Open and return the next trial; NoMoreTrialError at the end or before awaited results.

        Raises:
            NoMoreTrialError: the advisor has none left, or none before results of open trials, or a
                stopping rule ended the search.
            RuntimeError: the advisor raised.
        """
        with _connection_lock:
            self._check()
            if self._monitor.reason:
                raise NoMoreTrialError(self._monitor.reason)
            if self._first:
                return self._opened(self._first.popleft(), None)
            if not (self._ready or self._promised or self._exhausted):
                self._request()
            if self._ready:
                number, parameters = self._ready.popleft()
                return self._opened(self._with_own_folders(parameters), number)
            if self._exhausted:
                raise NoMoreTrialError("the advisor has no more trials")
            raise NoMoreTrialError("the advisor waits for results of open trials; tell them first")

    def tell(
        self,
        trial: int,
        value: JsonValue,
        *,
        stopped: bool = False,
        intermediate: Sequence[JsonValue] = (),
        duration: float | None = None,
    ) -> None:
        """Report the result of a trial; None for one that failed, or was `stopped` early.

        Args:
            trial: its id.
            value: its result.
            stopped: whether it was stopped early.
            intermediate: ignored; the advisor got each intermediate result from `should_stop`.
            duration: ignored; no advisor is cost-aware.
        """
        del intermediate, duration
        with _connection_lock:
            opened, number = self._open.pop(trial)
            self._monitor.tell(opened.parameters, value, self._space)
            if value is not None:
                self._outcomes.add(_without_folders(opened), value)
            if number is None:
                if value is not None:
                    sample = {"parameter": opened.parameters, "value": value}
                    self._call(lambda: self._driver.import_data([sample]))
                return
            if value is not None:
                self._metric(opened, number, value, 0, final=True)
            ended = stopped or str(opened.id) in self._stopped
            unsuccessful = "EARLY_STOPPED" if ended else "FAILED"
            event = "SUCCEEDED" if value is not None else unsuccessful
            end = TrialEndCommand(str(opened.id), number, event, customized=False)
            self._call(lambda: self._driver.trial_end(end))

    def should_stop(self, trial_id: int, history: list[JsonValue]) -> bool:
        """Pass the latest report of a trial to the advisor; return whether it stops the trial."""
        with _connection_lock:
            opened, number = self._open[trial_id]
            if number is not None:
                self._metric(opened, number, history[-1], len(history) - 1, final=False)
            return str(trial_id) in self._stopped

    def end(self, trial_id: int, *, success: bool) -> None:
        """Do nothing: `tell` reports the end to the advisor."""

    @property
    def best_value(self) -> float:
        """Value of the incumbent: the best feasible result."""
        return self._outcomes.best()[0]

    @property
    def best_parameters(self) -> JsonValue:
        """Parameters of the best trial, without folders of checkpoints, which `close` removes."""
        return self._outcomes.best()[1].parameters

    @property
    def pareto_front(self) -> list[FrontPoint]:
        """The feasible non-dominated trials, in the order of `tell`."""
        return self._outcomes.front()

    @property
    def stopped_because(self) -> str:
        """Reason of the stopping rule that ended the search; empty if none did."""
        return self._monitor.reason

    def close(self) -> None:
        """Delete the temporary folder of checkpoints, if there is one."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _check_first(self, configurations: Sequence[JsonValue]) -> None:
        broken = broken_constraints(self._space, tuple(configurations))
        for configuration, constraint in zip(configurations, broken, strict=True):
            if constraint:
                raise ValueError(
                    f"enqueued configuration {configuration!r:.200} must keep the constraint "
                    f"{constraint}"
                )

    def _call(self, work: Callable[[], _T]) -> _T:
        with _connection_lock:
            commands.connect(self._driver)
            try:
                return work()
            finally:
                commands.connect(None)

    def _receive(self, message: dict[str, Any]) -> None:
        """Record a driver's message: late suggestions, a stopped trial's id, or a failure."""
        if "late" in message:
            self._ready.extend((number, parameters) for number, parameters, _ in message["late"])
            self._promised -= len(message["late"])
            if message.get("exhausted"):
                self._exhausted, self._promised = True, 0
        elif "stop" in message:
            self._stopped.add(message["stop"])
        elif "failed" in message:
            failed = message["failed"]
            self._failure = f"{failed['call']} failed:\n{failed['traceback']}"

    def _check(self) -> None:
        if self._failure:
            raise RuntimeError(self._failure)

    def _request(self) -> None:
        number = self._requested
        self._requested += 1
        answer = self._call(lambda: self._driver.generate([number]))
        self._ready.extend((number, parameters) for number, parameters, _ in answer.parameters)
        self._promised += answer.deferred
        self._exhausted = answer.exhausted or not (answer.parameters or answer.deferred)
        for folder in answer.released:
            shutil.rmtree(self._own_folder(folder), ignore_errors=True)

    def _opened(self, parameters: JsonValue, number: int | None) -> StudyTrial:
        trial = StudyTrial(self._asked, parameters)
        self._asked += 1
        self._open[trial.id] = (trial, number)
        return trial

    def _metric(
        self, trial: StudyTrial, number: int, value: JsonValue, sequence: int, *, final: bool
    ) -> None:
        command = MetricCommand(
            trial_id=str(trial.id),
            attempt=1,
            parameter_id=number,
            final=final,
            sequence=sequence,
            value=value,
            customized=False,
        )
        self._call(lambda: self._driver.metric(command))

    def _with_own_folders(self, parameters: JsonValue) -> JsonValue:
        """Create checkpoint folders of this search; return the configuration with their paths."""
        if not isinstance(parameters, dict):
            return parameters
        folders = {
            key: str(self._own_folder(parameters[key]))
            for key in (LOAD_KEY, SAVE_KEY)
            if key in parameters
        }
        for folder in folders.values():
            Path(folder).mkdir(exist_ok=True)
        return parameters | folders

    def _own_folder(self, named: str) -> Path:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="nni-checkpoints-")
        return Path(self._folder.name) / Path(named).name


def _without_folders(trial: StudyTrial) -> StudyTrial:
    if not isinstance(trial.parameters, dict):
        return trial
    kept = {k: v for k, v in trial.parameters.items() if k not in {LOAD_KEY, SAVE_KEY}}
    return StudyTrial(trial.id, kept)


@contextmanager
def advisor_search(
    advisor: str | MsgDispatcherBase,
    arguments: dict[str, JsonValue] | None,
    search_space: JsonValue,
    objectives: Objectives,
    *,
    first: Sequence[JsonValue] = (),
    known: Sequence[JsonValue] = (),
    rules: Sequence[StoppingRule] = (),
    seed: int | None = None,
) -> Iterator[AdvisorSearch]:
    """Yield an `AdvisorSearch` by a name or an object, closed at the end; ValueError if wrong.

    Raises:
        ValueError: no advisor has the name, or it rejects its arguments or the space.
    """
    if isinstance(advisor, str):
        modes = {item.metric: item.mode for item in objectives.items}
        mode: Any = modes if objectives.several else objectives.items[0].mode
        built: object = create("advisor", advisor, arguments, seed, mode)
        assert isinstance(built, MsgDispatcherBase), "the registry returns the requested kind"
    elif arguments:
        raise ValueError("advisor_args must be left out when advisor is an object")
    else:
        built = advisor
    search = AdvisorSearch(built, search_space, objectives, first=first, known=known, rules=rules)
    try:
        yield search
    finally:
        search.close()
