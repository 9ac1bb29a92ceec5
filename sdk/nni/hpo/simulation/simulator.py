"""Simulator of experiments on recorded learning curves, in virtual time.

`simulate` runs a tuner with an assessor, or an advisor, as an experiment does: concurrent trials
report step by step, are stopped early, and end in an order that depends on their speeds. The
training is looked up in a `nni.hpo.CurveTable`, and the clock jumps from one report to the next. So
schedulers can be compared over hundreds of experiments where real ones would take days. The same
call with the same seed gives the same run.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nni.hpo import commands
from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Tuner
from nni.hpo.host.construction import seed_global_generators
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import loss_of
from nni.hpo.registry.factory import create
from nni.hpo.registry.validation import check_count
from nni.hpo.search.advisor_driver import AdvisorAlgorithmDriver
from nni.hpo.search.driver import AlgorithmDriver, MetricCommand, TrialEndCommand
from nni.hpo.search.tuner_driver import TunerDriver
from nni.hpo.simulation.curve_table import Curve, CurveTable
from nni.hpo.simulation.table_training import TableTraining

Status = Literal["SUCCEEDED", "EARLY_STOPPED", "CUT_OFF"]
"""`CUT_OFF`: the trial was running at the time limit."""


@dataclass(frozen=True, slots=True)
class SimulatedTrial:
    """Outcome of a simulated trial: configuration, status, value, steps, virtual start and end."""

    id: int
    """Number of the trial, from 0, in the order of start."""
    parameters: dict[str, JsonValue]
    status: Status
    value: float | None
    """Final result; `None` unless the trial succeeded with a finite one."""
    steps: int
    """Number of trained steps."""
    resumed_at: int
    """Step of its checkpoint; 0 without one."""
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Outcome of a simulated experiment: trials, virtual duration, incumbent and its progress.

    Examples:
        >>> from nni.hpo import SimulatedRun
        >>> SimulatedRun((), 3.0, None, ((1.0, 0.5), (2.0, 0.7))).best_at(1.5)
        0.5
    """

    trials: tuple[SimulatedTrial, ...]
    """Trials in the order of start."""
    duration_s: float
    """Virtual time of the last end of a trial."""
    best: SimulatedTrial | None
    """The incumbent, the earlier of equal trials; `None` without results."""
    progress: tuple[tuple[float, float], ...]
    """(time in seconds, value) of every new incumbent."""

    @property
    def steps(self) -> int:
        """Total number of trained steps."""
        return sum(trial.steps for trial in self.trials)

    def best_at(self, time_s: float) -> float | None:
        """Return the incumbent's value at a time in seconds; None before the first result.

        Args:
            time_s: simulated seconds since the start.

        Returns:
            The best value reported until then; `None` before the first result.
        """
        known = [value for at_s, value in self.progress if at_s <= time_s]
        return known[-1] if known else None


def simulate(  # noqa: PLR0913 - documented signature
    table: CurveTable,
    *,
    tuner: str | Tuner | None = None,
    tuner_args: Mapping[str, JsonValue] | None = None,
    assessor: str | Assessor | None = None,
    assessor_args: Mapping[str, JsonValue] | None = None,
    advisor: str | MsgDispatcherBase | None = None,
    advisor_args: Mapping[str, JsonValue] | None = None,
    trials: int = 100,
    concurrency: int = 1,
    seed: int = 0,
    max_duration_s: float = math.inf,
    trial_steps: int | None = None,
) -> SimulatedRun:
    """Simulate an experiment in virtual time on a table of learning curves; return its trials.

    A trial reports the value after each step as intermediate result and the last one as its final
    result. It is trained to step `TRIAL_BUDGET` of its configuration, or else for ``trial_steps``;
    a configuration with `load_checkpoint_dir` continues at the step of that checkpoint, on its own
    curve.

    Args:
        table: learning curves of all configurations.
        tuner: name or object; either this or an advisor.
        tuner_args: arguments of a named tuner.
        assessor: name or object; may stop trials early.
        assessor_args: arguments of a named assessor.
        advisor: name or object, instead of tuner and assessor.
        advisor_args: arguments of a named advisor.
        trials: largest number of trials.
        concurrency: largest number of concurrent trials.
        seed: seed of named algorithms, and of the global generators.
        max_duration_s: virtual time limit, which cuts off running trials; > 0.
        trial_steps: steps of a trial without a budget; `None` for the whole curve.

    Returns:
        All trials, the incumbent over time, and the virtual duration.

    Raises:
        ValueError: an argument is wrong, or a configuration has no curve.
        RuntimeError: the algorithm raised.

    Examples:
        >>> from nni.hpo import simulate, tabulate
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> table = tabulate(space, {}, lambda p: [p["x"], p["x"] * 2.0], clock_s=lambda: 0.0)
        >>> run = simulate(table, tuner="GridSearch", trials=2)
        >>> run.best.parameters, run.best.value, run.steps
        ({'x': 2}, 4.0, 4)
    """
    check_count("trials", trials, least=1)
    check_count("concurrency", concurrency, least=1)
    if trial_steps is not None:
        check_count("trial_steps", trial_steps, least=1)
    if not max_duration_s > 0:
        raise ValueError(f"max_duration_s must be > 0, got {max_duration_s!r}")
    if (tuner is None) == (advisor is None) or (advisor is not None and assessor is not None):
        raise ValueError("give a tuner and perhaps an assessor, or an advisor alone")
    seed_global_generators(seed, custom=True)
    training = TableTraining(table, trial_steps or table.steps)
    simulation = _Simulation(training, trials, concurrency, max_duration_s)
    mode = table.optimize_mode
    if advisor is not None:
        if isinstance(advisor, str):
            advisor = _advisor(advisor, advisor_args, seed, mode)
        driver = AdvisorAlgorithmDriver(advisor, {}, simulation.receive)
        commands.connect(driver)
        return simulation.run(driver)
    assert tuner is not None, "checked above"
    if isinstance(tuner, str):
        tuner = create("tuner", tuner, tuner_args, seed, mode)
    if isinstance(assessor, str):
        assessor = create("assessor", assessor, assessor_args, seed, mode)
    return simulation.run(TunerDriver(tuner, assessor, {}, simulation.receive))


def _advisor(
    name: str, arguments: Mapping[str, JsonValue] | None, seed: int, mode: str
) -> MsgDispatcherBase:
    built: object = create("advisor", name, arguments, seed, mode)
    if not isinstance(built, MsgDispatcherBase):
        raise ValueError(f"advisor must name an advisor, got {name!r}")  # noqa: TRY004 - a wrong name
    return built


@dataclass(slots=True)
class _Trial:
    """Running trial: parameters, learning curve, start time and steps done."""

    id: int
    parameter_id: int
    parameters: dict[str, Any]
    segment: Curve
    resumed_at: int
    start_s: float
    steps: int = 0

    @property
    def name(self) -> str:
        """Id of the trial as algorithms get it."""
        return f"{self.id:05d}"

    def value(self) -> float:
        """Return the metric after the steps done so far."""
        return self.segment.values[self.steps - 1]


@dataclass(slots=True)
class _Simulation:
    """Discrete-event simulation of the experiment: slots, a heap of events, and the algorithm."""

    training: TableTraining
    limit: int
    concurrency: int
    max_duration_s: float
    now_s: float = 0.0
    _driver: AlgorithmDriver = field(init=False)
    _due: list[tuple[float, int, _Trial]] = field(default_factory=list)
    _events: int = 0
    _started: int = 0
    _asked: int = 0
    _promised: int = 0
    _exhausted: bool = False
    _live: dict[str, _Trial] = field(default_factory=dict)
    _queue: list[tuple[int, Any]] = field(default_factory=list)
    _stops: list[str] = field(default_factory=list)
    """Trials to stop after the current call of the algorithm."""
    _ended: list[SimulatedTrial] = field(default_factory=list)
    _progress: list[tuple[float, float]] = field(default_factory=list)
    _best: SimulatedTrial | None = None

    def run(self, driver: AlgorithmDriver) -> SimulatedRun:
        """Process events until none is left or the time limit; return the run, trials by id."""
        self._driver = driver
        driver.initialize(self.training.table.search_space)
        self._fill_slots()
        while self._due:
            at_s, _, trial = heapq.heappop(self._due)
            if at_s > self.max_duration_s:
                self._cut_off()
                break
            self.now_s = at_s
            if trial.name in self._live:
                self._step(trial)
                self._fill_slots()
        self._ended.sort(key=lambda trial: trial.id)
        return SimulatedRun(tuple(self._ended), self.now_s, self._best, tuple(self._progress))

    def receive(self, message: dict[str, Any]) -> None:
        """Queue late suggestions and stops that the driver sends; raise on a failure."""
        if "late" in message:
            self._queue += [(id_, parameters) for id_, parameters, _ in message["late"]]
            self._exhausted = self._exhausted or bool(message.get("exhausted"))
            promised = self._promised - len(message["late"])
            self._promised = 0 if message.get("exhausted") else promised
        elif "stop" in message:
            self._stops.append(message["stop"])
        elif "failed" in message:
            failed = message["failed"]
            raise RuntimeError(f"{failed['call']} failed:\n{failed['traceback']}")

    def _fill_slots(self) -> None:
        """Request configurations for free slots and start them."""
        while self._start_queued() or self._ask():
            pass

    def _ask(self) -> bool:
        """Request as many configurations as slots and limit allow; return whether any arrived."""
        waiting = len(self._queue) + self._promised
        wanted = min(
            self.concurrency - len(self._live) - waiting, self.limit - self._started - waiting
        )
        if wanted <= 0 or self._exhausted:
            return False
        ids = list(range(self._asked, self._asked + wanted))
        self._asked += wanted
        answer = self._driver.generate(ids)
        self._queue += [(id_, parameters) for id_, parameters, _ in answer.parameters]
        self._promised += answer.deferred
        short = wanted - len(answer.parameters) - answer.deferred
        self._exhausted = answer.exhausted or short > 0
        return bool(answer.parameters)

    def _start_queued(self) -> bool:
        if not self._queue or len(self._live) >= self.concurrency:
            return False
        parameter_id, parameters = self._queue.pop(0)
        trial = _Trial(
            id=self._started,
            parameter_id=parameter_id,
            parameters=dict(parameters),
            segment=self.training.segment(parameters),
            resumed_at=self.training.resumed_at(parameters),
            start_s=self.now_s,
        )
        self._started += 1
        self._live[trial.name] = trial
        self._schedule(trial)
        return True

    def _schedule(self, trial: _Trial) -> None:
        self._events += 1  # events at one time happen in the order of their creation
        due_s = trial.start_s + (trial.steps + 1) * trial.segment.step_s
        heapq.heappush(self._due, (due_s, self._events, trial))

    def _step(self, trial: _Trial) -> None:
        """Train one step and report it; schedule the next, or end the trial after the last one."""
        trial.steps += 1
        value = trial.value()
        self._report(trial, value, trial.steps - 1, final=False)
        if trial.name not in self._live:
            return  # stopped early by this report
        if trial.steps < len(trial.segment.values):
            self._schedule(trial)
            return
        self._report(trial, value, 0, final=True)
        if trial.name in self._live:
            self.training.save(trial.parameters, trial.steps)
            self._end(trial, "SUCCEEDED", value)

    def _report(self, trial: _Trial, value: float, sequence: int, *, final: bool) -> None:
        self._driver.metric(
            MetricCommand(
                trial_id=trial.name,
                attempt=1,
                parameter_id=trial.parameter_id,
                final=final,
                sequence=sequence,
                value=value,
                customized=False,
            )
        )
        while self._stops:
            stopped = self._live.get(self._stops.pop(0))
            if stopped is not None:
                self._end(stopped, "EARLY_STOPPED")

    def _end(self, trial: _Trial, status: Status, value: float | None = None) -> None:
        del self._live[trial.name]
        ended = self._record(trial, status, value)
        mode = self.training.table.optimize_mode
        loss = loss_of(ended.value, mode)
        best = None if self._best is None else loss_of(self._best.value, mode)
        if loss is not None and ended.value is not None and (best is None or loss < best):
            self._best = ended
            self._progress.append((self.now_s, ended.value))
        if status != "CUT_OFF":
            self._driver.trial_end(
                TrialEndCommand(
                    trial.name,
                    trial.parameter_id,
                    status,
                    customized=False,
                    duration_s=self.now_s - trial.start_s,
                )
            )

    def _record(self, trial: _Trial, status: Status, value: float | None) -> SimulatedTrial:
        ended = SimulatedTrial(
            id=trial.id,
            parameters=trial.parameters,
            status=status,
            value=value if value is not None and math.isfinite(value) else None,
            steps=trial.steps,
            resumed_at=trial.resumed_at,
            start_s=trial.start_s,
            end_s=self.now_s,
        )
        self._ended.append(ended)
        return ended

    def _cut_off(self) -> None:
        self.now_s = self.max_duration_s
        for trial in list(self._live.values()):
            self._end(trial, "CUT_OFF")
