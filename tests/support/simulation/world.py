"""One simulated experiment from its creation to its end, and what must be true then."""

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
from tests.support.simulation.manager import Keeping, SimulatedManager, ViolationError
from tests.support.simulation.replaying import replay
from tests.support.simulation.scenario import Algorithm, Blow, Disaster, Noise, Scenario, Wish
from tests.support.simulation.virtual_time import Node, VirtualTime

_BOUND_S: Final = 7200.0
"""Within so long after the last blow every experiment is over."""
_CALM_S: Final = 60.0
"""Noise ends so long after the last blow and the last wish."""
_SILENCE_S: Final = 30.0
"""For so long after the end nothing may happen any more."""
_ASK_AGAIN_S: Final = 3.0
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
class Ending:
    """What became of one set of parameters."""

    parameters: EncodedValue
    source: ParameterSource
    state: str
    value: object
    intermediate_count: int


@dataclass(slots=True)
class _Ask:
    """A command that its user repeats until it is answered."""

    recorded: inputs.RecordedCommand
    done: bool = False
    then: Callable[[], None] = field(default=lambda: None)


class World:
    """Runs one scenario.

    Args:
        scenario: what is simulated; it alone decides what happens.
        outcome_of: what a configuration gives; None: what `Outcome.of` makes up.
        configure: changes the experiment's configuration.
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
        self._keeping = Keeping()
        self._asks: list[_Ask] = []
        self._open_wishes = 0
        self._open_blows = 0
        self._request_count = 0
        self._calm_at_s = 0.0
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
        """The experiment as its log tells it."""
        return self.auditor.experiment

    @property
    def manager(self) -> SimulatedManager:
        """Who owns the experiment: of those that live, the one with the largest epoch."""
        return max(self.managers, key=lambda m: (m.alive and not m.retired, m.epoch, m.name))

    def run(self) -> World:
        """Live through the scenario to its end.

        Raises:
            ViolationError: something happened that must not, or nothing does any more.
        """
        scenario = self.scenario
        self._start_manager()
        self.dispatcher.start()
        for agent in self.agents.values():
            agent.start()
        self._ask(self._create())
        self._run_while(lambda: not self.experiment.created, _BOUND_S)
        self._open_blows = len(scenario.disasters)
        self._open_wishes = len(scenario.requests)
        last_s = 0.0
        for disaster in scenario.disasters:
            last_s = max(last_s, disaster.at_s + disaster.lasts_s)
            self.time.at(disaster.at_s, self._strike, disaster)
        for request in scenario.requests:
            last_s = max(last_s, request.at_s)
            self.time.at(request.at_s, self._wish, request.wish)
        self.time.at(last_s + _CALM_S, self._calm)
        # What was sent before may still be on its way.
        self._calm_at_s = self.time.now_s + last_s + _CALM_S + 2 * scenario.noise.late_s
        bound_s = self.time.now_s + last_s + _CALM_S + _BOUND_S
        self._run_while(lambda: not self._over(), bound_s)
        if scenario.stopped_at_end and self.experiment.state is not ExperimentState.STOPPED:
            self._ask(inputs.Stop())
            self._run_while(lambda: not self._stopped(), self.time.now_s + _BOUND_S)
        decisions = self.auditor.decisions
        self._run_while(lambda: True, self.time.now_s + _SILENCE_S, bounded=False)
        if self.auditor.decisions != decisions:
            raise self._violation("something happened after the end")
        return self

    def _run_while(
        self, going_on: Callable[[], bool], until_s: float, *, bounded: bool = True
    ) -> None:
        time = self.time
        while going_on():
            for _ in range(_CHECK_EVERY):
                time.step()
            if time.now_s > until_s:
                if bounded:
                    raise self._violation("it is not over")
                return

    def _calm(self) -> None:
        self.bus.noise = Noise()

    def _over(self) -> bool:
        """Tell whether it has come to its end and everybody knows."""
        if self._open_blows or self._open_wishes or self.time.now_s < self._calm_at_s:
            return False
        if self.experiment.state not in _ENDS or not all(ask.done for ask in self._asks):
            return False
        return (
            all(agent.quiet for agent in self.agents.values())
            and not self.bus.tasks
            and any(m.alive and m.experiment == self.experiment for m in self.managers)
        )

    def _stopped(self) -> bool:
        return self.experiment.state is ExperimentState.STOPPED and self._over()

    def _violation(self, text: str) -> ViolationError:
        x = self.experiment
        lines = [
            text,
            f"scenario: {self.scenario}",
            f"time {self.time.now_s:.3f} s; {x.state.name}; {x.errors}; {x.algorithm}",
            f"live: {list(x.live.values())}",
            f"tasks: {self.bus.tasks}",
            f"managers: {[(m.alive, m.retired, m.experiment == x) for m in self.managers]}",
            f"deferred: {x.deferred}",
            f"asks: {[ask.recorded.command for ask in self._asks if not ask.done]}",
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
            self._keeping,
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

    def _ask(self, command: inputs.Command, then: Callable[[], None] = lambda: None) -> None:
        self._request_count += 1
        request_id = f"request{self._request_count}"
        ask = _Ask(inputs.RecordedCommand(command, request_id, type(command).__name__), then=then)
        self._asks.append(ask)
        self._send(ask)

    def _send(self, ask: _Ask) -> None:
        if ask.done:
            return
        manager = self.manager
        if manager.alive and not manager.frozen and manager._loaded:
            manager.submit(ask.recorded, lambda refusal: self._answered(ask, refusal))
        self.time.at(_ASK_AGAIN_S, self._send, ask)

    @staticmethod
    def _answered(ask: _Ask, refusal: ServiceError | None) -> None:
        del refusal  # a refusal is an answer, too
        if not ask.done:
            ask.done = True
            ask.then()

    def _wish(self, wish: Wish) -> None:
        x = self.experiment
        if wish is Wish.STOP_AND_RESUME:
            self._ask(inputs.Stop(), self._resume_once_stopped)
            return
        if wish is Wish.KILL_TRIAL:
            if x.live:
                self._ask(inputs.KillTrial(next(iter(x.live))))
        elif wish is Wish.ADD_TRIAL:
            request_id = f"request{self._request_count + 1}"
            encoded = to_value({"x": self._request_count / 100}).SerializeToString()
            self._ask(inputs.AddTrial(request_id, encoded))
        elif wish is Wish.MORE_CONCURRENCY:
            self._ask(inputs.Update(trial_concurrency=x.budget.trial_concurrency + 2))
        elif wish is Wish.LESS_CONCURRENCY:
            self._ask(inputs.Update(trial_concurrency=1))
        elif wish is Wish.MORE_TRIALS:
            self._ask(inputs.Update(max_trial_number=(x.budget.max_trial_number or 0) + 3))
        else:
            sample = [{"parameter": {"x": 0.5, "y": "a"}, "value": 0.25}]
            self._ask(inputs.ImportData("import", to_value(sample).SerializeToString()))
        self._open_wishes -= 1

    def _resume_once_stopped(self) -> None:
        if self.experiment.state is ExperimentState.STOPPING:
            self.time.at(0.1, self._resume_once_stopped)
        elif self.experiment.state is ExperimentState.STOPPED:
            self._ask(inputs.Resume(0, "", ""), self._wish_granted)
        else:
            self._wish_granted()  # somebody else was faster

    def _wish_granted(self) -> None:
        self._open_wishes -= 1

    # --- disasters

    def _strike(self, disaster: Disaster) -> None:
        node = self._target(disaster)
        blow, lasts_s = disaster.blow, disaster.lasts_s
        if blow in {Blow.KILL_MANAGER, Blow.KILL_DISPATCHER, Blow.KILL_AGENT}:
            node.kill()
            self.time.at(lasts_s, self._back, node.start)
        elif blow is Blow.KILL_HOST:
            self.dispatcher.kill_host()
            self._open_blows -= 1
        elif blow is Blow.FREEZE_MANAGER:
            node.freeze()
            self._start_manager()
            self.time.at(lasts_s, self._back, node.thaw)
        elif blow is Blow.FREEZE_AGENT:
            node.freeze()
            self.time.at(lasts_s, self._back, node.thaw)
        elif blow is Blow.RESTART_BUS:
            self.bus.go_down()
            self.time.at(lasts_s, self._back, self._bus_back)
        else:
            node.linked = False
            self.time.at(lasts_s, self._back, lambda: self._linked(node))

    def _target(self, disaster: Disaster) -> Node:
        if disaster.blow in {Blow.KILL_AGENT, Blow.FREEZE_AGENT, Blow.CUT_AGENT}:
            return list(self.agents.values())[disaster.which % len(self.agents)]
        if disaster.blow in {Blow.KILL_MANAGER, Blow.FREEZE_MANAGER, Blow.CUT_MANAGER}:
            return self.manager
        return self.dispatcher

    def _back(self, recover: Callable[[], None]) -> None:
        self._open_blows -= 1
        recover()

    @staticmethod
    def _linked(node: Node) -> None:
        node.linked = True
        node.reconnected()

    def _bus_back(self) -> None:
        if not self.bus.up:
            self.bus.come_up()
            for node in [*self.managers, *self.agents.values()]:
                if node.alive:
                    node.reconnected()

    # --- what is true at the end

    def history(self) -> dict[int, Ending]:
        """Give what became of every set of parameters, by its id."""
        return {
            trial.parameter_id: Ending(
                trial.parameters,
                trial.source,
                trial.state.name,
                None if trial.final is None else trial.final.numbers,
                trial.intermediate_count,
            )
            for trial in self.experiment.trials.values()
        }

    def check(self) -> None:
        """Check what must be true of every experiment that is over.

        Raises:
            ViolationError: it is not.
        """
        x = self.experiment
        if any(trial.live for trial in x.trials.values()) or x.live:
            raise self._violation("a trial is not over")
        if x.state is ExperimentState.ERROR and not self._host_was_killed_thrice():
            raise self._violation("it ended in ERROR")
        if set(self.auditor.ends) != set(x.trials):
            raise self._violation("a trial has no end")
        for agent in self.agents.values():
            if agent.running:
                raise self._violation(f"{agent.name} runs trials that are over")
        self._check_folds()
        check_replay(self.bus.log, repeatable=x.repeatable)

    def _host_was_killed_thrice(self) -> bool:
        """Tell whether the algorithm may have been given up: a user would see it die, too."""
        kills = [d for d in self.scenario.disasters if d.blow is Blow.KILL_HOST]
        return len(kills) >= ATTEMPTS

    def _check_folds(self) -> None:
        snapshots: list[FoldedExperiment] = [
            decode_snapshot(data) for data in self._keeping.snapshots
        ]
        for folded in [FoldedExperiment(Experiment()), *snapshots]:
            for batch in self.bus.log:
                if batch.sequence > folded.sequence:
                    fold_batch(folded, batch.sequence, batch.payload)
            if folded.experiment != self.experiment:
                raise self._violation("a fold from a snapshot gives another state")


def check_equal_to_undisturbed(world: World) -> None:
    """Check that the same experiment in a world without troubles has the same history.

    Raises:
        ViolationError: it has not, or one of the two breaks another rule.
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
    """Draw every suggestion of a log again and compare.

    Raises:
        ViolationError: one differs, or the log itself says that some did.
    """
    if not repeatable:
        raise ViolationError("the log says that the algorithm did not repeat itself")
    verdict, differences = replay([(batch.sequence, batch.payload) for batch in log])
    if not verdict.repeatable:
        raise ViolationError(f"{verdict.reason}: {differences[:5]}")
