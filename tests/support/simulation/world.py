"""Simulation of one experiment from its creation to its end, with checks of the outcome."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.errors import ServiceError
from svc_dispatcher.domain.failures import ATTEMPTS
from svc_manager.converters.creation import created_event
from svc_manager.domain import inputs
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import EncodedValue, ParameterSource
from svc_manager.event_log.reader import FoldedExperiment, fold_batch
from svc_manager.event_log.snapshot import decode_snapshot
from tests.support.simulation.agent import Outcome, SimulatedAgent
from tests.support.simulation.auditor import Auditor
from tests.support.simulation.bus import Batch, SimulatedBus
from tests.support.simulation.dispatcher import SimulatedDispatcher
from tests.support.simulation.manager import DurableState, SimulatedManager, ViolationError
from tests.support.simulation.replay import replay
from tests.support.simulation.scenario import (
    Algorithm,
    Fault,
    FaultKind,
    Noise,
    Scenario,
    UserAction,
)
from tests.support.simulation.virtual_time import Node, VirtualTime

_BOUND_S: Final = 7200.0
"""Seconds after the end of noise within which every experiment must end."""
_NOISE_AFTER_S: Final = 60.0
"""Seconds after the last fault and the last user request at which noise ends."""
_IDLE_S: Final = 30.0
"""Seconds after the end in which no decision may be logged."""
_RESUBMIT_AFTER_S: Final = 3.0
_CHECK_EVERY: Final = 32
_SPACE: Final = {
    "x": {"_type": "uniform", "_value": [0.0, 1.0]},
    "y": {"_type": "choice", "_value": ["a", "b", "c"]},
}
_GRID_SPACE: Final = {
    "x": {"_type": "quniform", "_value": [0.0, 1.0, 0.25]},
    "y": {"_type": "choice", "_value": ["a", "b", "c"]},
}
_ENDS: Final = frozenset({ExperimentState.DONE, ExperimentState.STOPPED, ExperimentState.ERROR})


def _config(scenario: Scenario) -> config_pb2.ExperimentConfig:
    config = config_pb2.ExperimentConfig(
        trial_command="python3 trial.py",
        trial_concurrency=scenario.concurrency,
        max_trial_number=scenario.trials,
        max_trial_retries=scenario.trial_retries,
        retry_failed_trials=scenario.retry_failed,
        include_intermediate_results=scenario.include_intermediate,
        experiment_working_directory="/nowhere",
        seed=scenario.seed % 2**31,
    )
    if scenario.max_duration_s is not None:
        config.max_experiment_duration.FromMilliseconds(int(scenario.max_duration_s * 1000))
    config.training_services.add(platform="local")
    grid = scenario.algorithm is Algorithm.GRID
    config.search_space.CopyFrom(to_value(_GRID_SPACE if grid else _SPACE))
    deferring = scenario.algorithm in {Algorithm.DEFERRING, Algorithm.ENDING}
    if deferring:
        config.advisor.custom.class_name = (
            "tests.support.simulation.deferring_advisor.DeferringAdvisor"
        )
    else:
        config.tuner.name = scenario.algorithm.value
    if scenario.algorithm is Algorithm.ENDING:
        config.advisor.class_args.CopyFrom(to_value({"limit": 1 + scenario.seed % 9}))
    if scenario.assessor and not deferring:
        config.assessor.name = "Medianstop"
        config.assessor.class_args.CopyFrom(to_value({"start_step": 1}))
    return config


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """Final state of one set of parameters."""

    parameters: EncodedValue
    source: ParameterSource
    state: str
    value: object
    intermediate_count: int


@dataclass(slots=True)
class _PendingCommand:
    """Command that its user repeats until it is answered."""

    recorded: inputs.RecordedCommand
    done: bool = False
    then: Callable[[], None] = field(default=lambda: None)


class World:
    """Simulation of one scenario: bus, managers, agents, dispatcher and users.

    Args:
        scenario: experiment, noise, faults and requests; it alone determines the history.
        outcome_of: outcome of a configuration; None: `Outcome.of`.
        configure: function that changes the experiment's configuration.
    """

    def __init__(
        self,
        scenario: Scenario,
        outcome_of: Callable[[Any], Outcome] | None = None,
        configure: Callable[[config_pb2.ExperimentConfig], None] = lambda _: None,
    ) -> None:
        self.scenario = scenario
        self._configure = configure
        self.time = VirtualTime()
        self.bus = SimulatedBus(self.time, random.Random(scenario.seed), scenario.noise)
        self.auditor = Auditor(self.bus)
        self.dispatcher = SimulatedDispatcher(self.time, self.bus)
        self.managers: list[SimulatedManager] = []
        self.agents: dict[str, SimulatedAgent] = {}
        self._durable = DurableState()
        self._commands: list[_PendingCommand] = []
        self._open_requests = 0
        self._open_faults = 0
        self._request_count = 0
        self._noise_free_at_s = 0.0
        self.last_trial_s: float | None = None
        """Time from which the experiment made no more trials."""
        self.bus.on_log(self._note_last_trial)
        for number in range(scenario.agents):
            name = f"agent{number}"
            self.agents[name] = SimulatedAgent(
                self.time,
                name,
                self.bus,
                self.managers,
                loses_unrenewed=scenario.loses_unrenewed,
                failing=scenario.failing,
                outcome_of=outcome_of,
            )

    @property
    def experiment(self) -> Experiment:
        """State of the experiment, folded from its log."""
        return self.auditor.experiment

    @property
    def manager(self) -> SimulatedManager:
        """Owner of the experiment: the live manager with the largest epoch."""
        return max(self.managers, key=lambda m: (m.alive and not m.retired, m.epoch, m.name))

    def run(self) -> World:
        """Run the scenario to its end.

        Raises:
            ViolationError: an invariant is broken, or the experiment does not end.
        """
        scenario = self.scenario
        self._start_manager()
        self.dispatcher.start()
        for agent in self.agents.values():
            agent.start()
        self._submit(self._create())
        self._run_while(lambda: not self.experiment.created, _BOUND_S)
        self._open_faults = len(scenario.faults)
        self._open_requests = len(scenario.requests)
        last_s = 0.0
        for fault in scenario.faults:
            last_s = max(last_s, fault.at_s + fault.lasts_s)
            self.time.at(fault.at_s, self._inject, fault)
        for request in scenario.requests:
            last_s = max(last_s, request.at_s)
            self.time.at(request.at_s, self._request_action, request.action)
        self.time.at(last_s + _NOISE_AFTER_S, self._silence_noise)
        # Messages sent before may still be on their way.
        self._noise_free_at_s = (
            self.time.now_s + last_s + _NOISE_AFTER_S + 2 * scenario.noise.late_s
        )
        bound_s = self.time.now_s + last_s + _NOISE_AFTER_S + _BOUND_S
        self._run_while(lambda: not self._finished(), bound_s)
        if scenario.stopped_at_end and self.experiment.state is not ExperimentState.STOPPED:
            self._submit(inputs.Stop())
            self._run_while(lambda: not self._stopped(), self.time.now_s + _BOUND_S)
        decisions = self.auditor.decisions
        self._run_while(lambda: True, self.time.now_s + _IDLE_S, bounded=False)
        if self.auditor.decisions != decisions:
            raise self._violation("something happened after the end")
        return self

    def _run_while(
        self, condition: Callable[[], bool], until_s: float, *, bounded: bool = True
    ) -> None:
        time = self.time
        while condition():
            for _ in range(_CHECK_EVERY):
                time.step()
            if time.now_s > until_s:
                if bounded:
                    raise self._violation("it is not over")
                return

    def _note_last_trial(self) -> None:
        ends = _ENDS | {ExperimentState.NO_MORE_TRIAL}
        if self.last_trial_s is None and self.experiment.state in ends:
            self.last_trial_s = self.time.now_s

    def _silence_noise(self) -> None:
        self.bus.noise = Noise()

    def _finished(self) -> bool:
        """Return whether the experiment has ended and every process has learned of it."""
        if self._open_faults or self._open_requests or self.time.now_s < self._noise_free_at_s:
            return False
        if self.experiment.state not in _ENDS or not all(
            pending.done for pending in self._commands
        ):
            return False
        return (
            all(agent.idle for agent in self.agents.values())
            and not self.bus.tasks
            and any(m.alive and m.experiment == self.experiment for m in self.managers)
        )

    def _stopped(self) -> bool:
        return self.experiment.state is ExperimentState.STOPPED and self._finished()

    def _violation(self, text: str) -> ViolationError:
        experiment = self.experiment
        managers = [(m.alive, m.retired, m.experiment == experiment) for m in self.managers]
        lines = [
            text,
            f"scenario: {self.scenario}",
            f"time {self.time.now_s:.3f} s; {experiment.state.name}; {experiment.errors}",
            f"algorithm: {experiment.algorithm}",
            f"live: {list(experiment.live.values())}",
            f"tasks: {self.bus.tasks}",
            f"managers: {managers}",
            f"deferred: {experiment.deferred}",
            f"commands: {[item.recorded.command for item in self._commands if not item.done]}",
        ]
        lines += [
            f"{agent.name}: alive {agent.alive}, holds {agent.held}, claims "
            f"{agent.disk.journal.claims}, outbox {len(agent._outbox)}"
            for agent in self.agents.values()
        ]
        return ViolationError("\n".join(lines))

    # --- managers

    def _start_manager(self) -> None:
        manager = SimulatedManager(
            self.time,
            f"manager{len(self.managers)}",
            self.bus,
            self._durable,
            self.agents,
        )
        self.managers.append(manager)
        manager.start()

    # --- users

    def _create(self) -> inputs.Create:
        config = _config(self.scenario)
        self._configure(config)
        created = created_event(
            self.bus.experiment_id,
            config,
            environment_sha256="",
            interpreter="python3",
            nni_version="0",
            resolved_mode=1,
        )
        return inputs.Create(created, 0, "")

    def _submit(self, command: inputs.Command, then: Callable[[], None] = lambda: None) -> None:
        self._request_count += 1
        request_id = f"request{self._request_count}"
        pending = _PendingCommand(
            inputs.RecordedCommand(command, request_id, type(command).__name__), then=then
        )
        self._commands.append(pending)
        self._send(pending)

    def _send(self, pending: _PendingCommand) -> None:
        if pending.done:
            return
        manager = self.manager
        if manager.alive and not manager.frozen and manager._loaded:
            manager.submit(pending.recorded, lambda refusal: self._answered(pending, refusal))
        self.time.at(_RESUBMIT_AFTER_S, self._send, pending)

    @staticmethod
    def _answered(pending: _PendingCommand, refusal: ServiceError | None) -> None:
        del refusal  # a refusal also counts as an answer
        if not pending.done:
            pending.done = True
            pending.then()

    def _request_action(self, action: UserAction) -> None:
        experiment = self.experiment
        if action is UserAction.STOP_AND_RESUME:
            self._submit(inputs.Stop(), self._resume_once_stopped)
            return
        if action is UserAction.KILL_TRIAL:
            if experiment.live:
                self._submit(inputs.KillTrial(next(iter(experiment.live))))
        elif action is UserAction.ADD_TRIAL:
            request_id = f"request{self._request_count + 1}"
            encoded = to_value({"x": self._request_count / 100}).SerializeToString()
            self._submit(inputs.AddTrial(request_id, encoded))
        elif action is UserAction.MORE_CONCURRENCY:
            self._submit(inputs.Update(trial_concurrency=experiment.budget.trial_concurrency + 2))
        elif action is UserAction.LESS_CONCURRENCY:
            self._submit(inputs.Update(trial_concurrency=1))
        elif action is UserAction.MORE_TRIALS:
            self._submit(
                inputs.Update(max_trial_number=(experiment.budget.max_trial_number or 0) + 3)
            )
        else:
            sample = [{"parameter": {"x": 0.5, "y": "a"}, "value": 0.25}]
            self._submit(inputs.ImportData("import", to_value(sample).SerializeToString()))
        self._open_requests -= 1

    def _resume_once_stopped(self) -> None:
        if self.experiment.state is ExperimentState.STOPPING:
            self.time.at(0.1, self._resume_once_stopped)
        elif self.experiment.state is ExperimentState.STOPPED:
            self._submit(inputs.Resume(0, "", ""), self._finish_request)
        else:
            self._finish_request()  # another request was faster

    def _finish_request(self) -> None:
        self._open_requests -= 1

    # --- faults

    def _inject(self, fault: Fault) -> None:
        node = self._target(fault)
        kind, lasts_s = fault.kind, fault.lasts_s
        if kind in {FaultKind.KILL_MANAGER, FaultKind.KILL_DISPATCHER, FaultKind.KILL_AGENT}:
            node.kill()
            self.time.at(lasts_s, self._recover, node.start)
        elif kind is FaultKind.KILL_HOST:
            self.dispatcher.kill_host()
            self._open_faults -= 1
        elif kind in {FaultKind.SET_CLOCK_AHEAD, FaultKind.SET_CLOCK_BACK}:
            sign = 1 if kind is FaultKind.SET_CLOCK_AHEAD else -1
            self.time.wall_step_s += sign * 60 * lasts_s
            self._open_faults -= 1
        elif kind is FaultKind.FREEZE_MANAGER:
            node.freeze()
            self._start_manager()
            self.time.at(lasts_s, self._recover, node.thaw)
        elif kind is FaultKind.FREEZE_AGENT:
            node.freeze()
            self.time.at(lasts_s, self._recover, node.thaw)
        elif kind is FaultKind.FILL_DISK:
            self._fill_disk(fault)
        elif kind is FaultKind.RESTART_BUS:
            self.bus.go_down()
            self.time.at(lasts_s, self._recover, self._restart_bus)
        else:
            node.linked = False
            self.time.at(lasts_s, self._recover, lambda: self._link(node))

    def _fill_disk(self, fault: Fault) -> None:
        agent = list(self.agents.values())[fault.agent % len(self.agents)]
        agent.full_disks += 1

        def free() -> None:
            agent.full_disks -= 1

        self.time.at(fault.lasts_s, self._recover, free)

    def _target(self, fault: Fault) -> Node:
        if fault.kind in {FaultKind.KILL_AGENT, FaultKind.FREEZE_AGENT, FaultKind.CUT_AGENT}:
            return list(self.agents.values())[fault.agent % len(self.agents)]
        if fault.kind in {FaultKind.KILL_MANAGER, FaultKind.FREEZE_MANAGER, FaultKind.CUT_MANAGER}:
            return self.manager
        return self.dispatcher

    def _recover(self, recover: Callable[[], None]) -> None:
        self._open_faults -= 1
        recover()

    @staticmethod
    def _link(node: Node) -> None:
        node.linked = True
        node.reconnected()

    def _restart_bus(self) -> None:
        if not self.bus.up:
            self.bus.come_up()
            for node in [*self.managers, *self.agents.values()]:
                if node.alive:
                    node.reconnected()

    # --- checks of the final state

    def history(self) -> dict[int, TrialRecord]:
        """Return the final state of every set of parameters, by its id."""
        return {
            trial.parameter_id: TrialRecord(
                trial.parameters,
                trial.source,
                trial.state.name,
                None if trial.final is None else trial.final.numbers,
                trial.intermediate_count,
            )
            for trial in self.experiment.trials.values()
        }

    def check(self) -> None:
        """Raise ViolationError unless the finished experiment keeps every invariant.

        Raises:
            ViolationError: an invariant is broken.
        """
        experiment = self.experiment
        if any(trial.live for trial in experiment.trials.values()) or experiment.live:
            raise self._violation("a trial is not over")
        if experiment.state is ExperimentState.ERROR and not self._algorithm_may_fail():
            raise self._violation("it ended in ERROR")
        if set(self.auditor.ends) != set(experiment.trials):
            raise self._violation("a trial has no end")
        for agent in self.agents.values():
            if agent.running:
                raise self._violation(f"{agent.name} runs trials that are over")
        self._check_folds()
        check_replay(self.bus.log, repeatable=experiment.repeatable)

    def _algorithm_may_fail(self) -> bool:
        """Return whether host kills suffice to give the algorithm up, as a user would see."""
        kills = [d for d in self.scenario.faults if d.kind is FaultKind.KILL_HOST]
        return len(kills) >= ATTEMPTS

    def _check_folds(self) -> None:
        snapshots: list[FoldedExperiment] = [
            decode_snapshot(data) for data in self._durable.snapshots
        ]
        for folded in [FoldedExperiment(Experiment()), *snapshots]:
            for batch in self.bus.log:
                if batch.sequence > folded.sequence:
                    fold_batch(folded, batch.sequence, batch.payload)
            if folded.experiment != self.experiment:
                raise self._violation("a fold from a snapshot has another state")


def check_equal_to_undisturbed(world: World) -> None:
    """Raise ViolationError unless the undisturbed experiment has the same history.

    Raises:
        ViolationError: the histories differ, or one of the two breaks an invariant.
    """
    world.check()
    calm = World(world.scenario.undisturbed()).run()
    calm.check()
    ours, theirs = world.history(), calm.history()
    for parameter_id in sorted(ours.keys() | theirs.keys()):
        if ours.get(parameter_id) != theirs.get(parameter_id):
            raise ViolationError(
                f"parameter {parameter_id} is {ours.get(parameter_id)} instead of "
                f"{theirs.get(parameter_id)} in {world.scenario}"
            )


def check_replay(log: list[Batch], *, repeatable: bool = True) -> None:
    """Raise ViolationError unless every suggestion of a log can be recomputed.

    Raises:
        ViolationError: a suggestion differs, or the log records that some did.
    """
    if not repeatable:
        raise ViolationError("the log records that the algorithm did not repeat itself")
    result, differences = replay([(batch.sequence, batch.payload) for batch in log])
    if not result.repeatable:
        raise ViolationError(f"{result.reason}: {differences[:5]}")
