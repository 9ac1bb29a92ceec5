"""Manager with fakes of dispatcher and agent that use the real protocol.

The fakes are clients of the bus and know no internals of the manager, so the same tests run over
the bus in memory and over a real nats-server.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2, inbox_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import from_value, to_value
from svc_common import subjects
from svc_common.errors import InvalidArgumentError
from svc_common.messaging.ports import Bus
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.tasks import TaskOwner
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.app import build_with_local_adapters
from svc_manager.ports import PortTakenError
from svc_manager.settings import Settings
from svc_manager.usecases.activation import NewExperiment
from svc_manager.usecases.config_checks import PLATFORMS
from svc_manager.usecases.experiments import Experiments
from svc_manager.wiring import Manager, Stores

POOL = "local"
PATIENCE_S = 60.0
"""Time limit for steps that take milliseconds on an idle machine."""


class InMemoryListeners:
    """`Listeners` that only record ports."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[int, str]] = {}
        self.taken: dict[int, str] = {}
        """Ports of other programs, with their holders."""
        self.opened = asyncio.Event()

    async def open_listener(self, port: int, experiment_id: str, url_prefix: str) -> None:
        holders = {held: f"experiment {key}" for key, (held, _) in self.open.items()}
        if self.open.get(experiment_id, (0, ""))[0] != port:
            holder = self.taken.get(port, "") or holders.get(port, "")
            if holder:
                raise PortTakenError(port, holder)
        self.open[experiment_id] = (port, url_prefix)
        self.opened.set()

    async def close_listener(self, experiment_id: str) -> None:
        self.open.pop(experiment_id, None)

    def urls(self, port: int, url_prefix: str) -> list[str]:
        return [f"http://127.0.0.1:{port}/{url_prefix}"]


class PickyChecker:
    """`AlgorithmChecker` that accepts the tuner `Counter`, and `Successor`, which may maximize."""

    async def check(
        self,
        config: config_pb2.ExperimentConfig,
        interpreter: str,
        *,
        replaces_space: bool = False,
        replaced_tuner: config_pb2.AlgorithmConfig | None = None,
    ) -> tuple[list[str], str]:
        if replaced_tuner is not None and config.tuner.name == "Forgetful":
            raise InvalidArgumentError(
                "tuner.name", f"must learn the results of {replaced_tuner.name}", "Forgetful"
            )
        if config.tuner.name == "Successor":
            arguments = from_value(config.tuner.class_args) or {}
            return [], arguments.get("optimize_mode", "maximize")
        if config.tuner.name != "Counter":
            raise InvalidArgumentError("tuner.name", "must be Counter", config.tuner.name)
        return ["a warning"], "minimize"


class SimpleJobChecker:
    """`JobChecker` that accepts the job `{}`, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        self.asked += 1
        if config.HasField("compression") and config.compression.job != to_value({}):
            raise InvalidArgumentError("job.model", "is missing")


class CountingDispatcher:
    """Dispatcher that answers with `{"x": parameter id}`, at most ``limit`` times."""

    def __init__(self, bus: Bus, limit: int = 10**9) -> None:
        self._bus = bus
        self._limit = limit
        self.imported: list[Any] = []
        self.answering = asyncio.Event()
        self.answering.set()

    async def run(self, experiment_id: str) -> None:
        async with aclosing(self._bus.events.follow(experiment_id)) as feed:
            async for message in feed:
                batch = event_pb2.EventBatch.FromString(message.payload)
                for index, event in enumerate(batch.events):
                    await self._take(experiment_id, message.sequence, index, event)

    async def _take(
        self, experiment_id: str, sequence: int, index: int, event: event_pb2.Event
    ) -> None:
        await self.answering.wait()
        position = event_pb2.EventPosition(sequence=sequence, index=index)
        if event.HasField("algorithm_requested"):
            started = event_pb2.AlgorithmStarted(generation=event.algorithm_requested.generation)
            await self._publish(experiment_id, inbox_pb2.InboxMessage(algorithm_started=started))
        elif event.HasField("data_imported"):
            self.imported.append(from_value(event.data_imported.data))
        elif event.HasField("trials_requested"):
            request = event.trials_requested
            ids = [n for n in request.parameter_ids if n < self._limit]
            generated = event_pb2.ParametersGenerated(
                request_id=request.request_id,
                exhausted=len(ids) < len(request.parameter_ids),
                based_on=position,
            )
            for parameter_id in ids:
                item = generated.parameters.add(parameter_id=parameter_id)
                item.parameters.CopyFrom(to_value({"x": parameter_id}))
            await self._publish(
                experiment_id, inbox_pb2.InboxMessage(parameters_generated=generated)
            )

    async def _publish(self, experiment_id: str, message: inbox_pb2.InboxMessage) -> None:
        payload = message.SerializeToString()
        await self._bus.inbox.publish(
            experiment_id, "dispatcher", payload, message_id=f"{hash(payload)}"
        )


@dataclass(slots=True)
class Held:
    """Trial that the agent holds."""

    task: task_pb2.TrialTask
    ack_subject: str
    claim_id: str
    sequence: int = 0
    over: bool = False


@dataclass(slots=True)
class ScriptedAgent:
    """Agent that runs ``script`` for each task, and reports like a real agent."""

    bus: Bus
    script: Callable[[ScriptedAgent, Held], Any]
    runner_id: str = "agent-1"
    held: dict[str, Held] = field(default_factory=dict)
    seen: list[tuple[str, int]] = field(default_factory=list)
    """(trial, attempt) of every task pulled."""
    dropped: list[str] = field(default_factory=list)
    holding: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def run(self) -> None:
        feed = await self.bus.tasks.pull(POOL)
        claims = itertools.count()
        try:
            feed.grant(10_000)
            async for task in feed:
                message = task_pb2.TrialTask.FromString(task.payload)
                held = Held(message, task.ack_subject, f"{self.runner_id}-{next(claims)}")
                self.announce()
                self.seen.append((message.trial_id, message.attempt))
                self.held[message.trial_id] = held
                await self.script(self, held)
                async with self.holding:
                    self.holding.notify_all()
        finally:
            await feed.aclose()

    async def obey(self) -> None:
        orders = await self.bus.signals.subscribe(subjects.control_subject(self.runner_id))
        async with aclosing(orders):
            async for order in orders:
                control = task_pb2.RunnerControl.FromString(order.payload)
                if control.HasField("stop_trial"):
                    held = self.held[control.stop_trial.trial_id]
                    await self.exit(held, cause=report_pb2.EXIT_CAUSE_STOPPED, code=None)
                elif control.HasField("drop_trial"):
                    self.dropped.append(control.drop_trial.trial_id)
                elif control.HasField("forget_experiment"):
                    self._forget(control.forget_experiment.experiment_id)

    def announce(self) -> None:
        """Publish a presence."""
        presence = task_pb2.RunnerPresence(runner_id=self.runner_id, pool=POOL)
        self.bus.signals.publish(
            subjects.presence_subject(self.runner_id), presence.SerializeToString()
        )

    def _forget(self, experiment_id: str) -> None:
        for held in self.live():
            if held.task.experiment_id == experiment_id:
                held.over = True
                self.dropped.append(held.task.trial_id)

    async def holds(self, count: int) -> list[Held]:
        """Wait until the agent holds ``count`` trials that have not ended; return them."""
        async with asyncio.timeout(PATIENCE_S), self.holding:
            await self.holding.wait_for(lambda: len(self.live()) >= count)
        return self.live()

    def live(self) -> list[Held]:
        return [held for held in self.held.values() if not held.over]

    async def start(self, held: Held) -> None:
        report = report_pb2.TrialReport()
        report.started.started_at.GetCurrentTime()
        await self.report(held, report)

    async def result(self, held: Held, value: object) -> None:
        report = report_pb2.TrialReport()
        report.metric.type = metric_pb2.METRIC_TYPE_FINAL
        report.metric.value.CopyFrom(to_value(value))
        await self.report(held, report)

    async def intermediate(self, held: Held, value: object, sequence: int) -> None:
        report = report_pb2.TrialReport()
        report.metric.type = metric_pb2.METRIC_TYPE_PERIODICAL
        report.metric.sequence = sequence
        report.metric.value.CopyFrom(to_value(value))
        await self.report(held, report)

    async def exit(
        self,
        held: Held,
        code: int | None = 0,
        cause: report_pb2.ExitCause.ValueType = report_pb2.EXIT_CAUSE_ENDED,
    ) -> None:
        if held.over:
            return
        held.over = True
        report = report_pb2.TrialReport()
        report.exited.cause = cause
        report.exited.ended_at.GetCurrentTime()
        if code is not None:
            report.exited.exit_code = code
        await self.report(held, report)
        await self.bus.tasks.ack(held.ack_subject)

    async def lose_attempt(self, held: Held) -> None:
        held.over = True
        report = report_pb2.TrialReport()
        report.lost.reason = "the agent was restarted"
        await self.report(held, report)
        await self.bus.tasks.ack(held.ack_subject)

    async def report(self, held: Held, report: report_pb2.TrialReport) -> None:
        report.trial_id = held.task.trial_id
        report.attempt = held.task.attempt
        report.claim_id = held.claim_id
        report.sequence = held.sequence
        held.sequence += 1
        reports = report_pb2.RunnerReports(runner_id=self.runner_id, reports=[report])
        payload = inbox_pb2.InboxMessage(runner_reports=reports).SerializeToString()
        message_id = f"{held.task.trial_id}.{held.claim_id}.{report.sequence}"
        await self.bus.inbox.publish(
            held.task.experiment_id, self.runner_id, payload, message_id=message_id
        )


async def succeed(agent: ScriptedAgent, held: Held) -> None:
    """Run a trial whose result is its parameter `x`."""
    await agent.start(held)
    x = from_value(held.task.parameters)["x"]
    await agent.intermediate(held, x / 2, 0)
    await agent.result(held, x)
    await agent.exit(held)


async def hold(agent: ScriptedAgent, held: Held) -> None:
    """Start a trial and leave it running."""
    await agent.start(held)


@dataclass(slots=True)
class World:
    """Manager with its fakes."""

    bus: Bus
    folder: Path
    manager: Manager
    listeners: InMemoryListeners
    dispatcher: CountingDispatcher
    agent: ScriptedAgent
    tasks: TaskOwner
    jobs: SimpleJobChecker = field(default_factory=SimpleJobChecker)

    @property
    def experiments(self) -> Experiments:
        return self.manager.experiments

    async def create(self, *, port: int = 0, request_id: str = "", **config: Any) -> str:
        """Create an experiment that the dispatcher follows; return its id."""
        new = NewExperiment(
            self.config(**config), request_id, port, "", {"HOME": "/home/u"}, "/usr/bin/python3"
        )
        opened = await self.experiments.create(new)
        self.follow(opened.experiment.id)
        return opened.experiment.id

    async def create_on(
        self, *platforms: str, options: Mapping[str, Any] | None = None, **config: Any
    ) -> str:
        """Create an experiment on platforms, all with these options; return its id."""
        blobs = DirectoryBlobStore(self.folder / "nni" / "blobs")
        key = await blobs.put(b"archive of the code")
        return await self.create(
            training_services=[
                config_pb2.TrainingServiceConfig(platform=one, options=to_value(options or {}))
                for one in platforms
            ],
            code_archive=value_pb2.BlobRef(sha256=key.partition("/")[2], size_bytes=19),
            **config,
        )

    def follow(self, experiment_id: str) -> None:
        """Start the dispatcher for an experiment."""
        self.tasks.start(self.dispatcher.run(experiment_id), f"dispatcher {experiment_id}")

    def config(self, **fields: Any) -> config_pb2.ExperimentConfig:
        """Return a valid configuration with ``fields`` replaced."""
        values: Mapping[str, Any] = {
            "trial_command": "python3 trial.py",
            "trial_code_directory": str(self.folder),
            "trial_concurrency": 2,
            "max_trial_number": 5,
            "experiment_working_directory": str(self.folder / "experiments"),
            **fields,
        }
        config = config_pb2.ExperimentConfig(
            **{key: value for key, value in values.items() if value is not None}
        )
        config.search_space.CopyFrom(to_value({"x": {"_type": "randint", "_value": [0, 9]}}))
        if not config.HasField("tuner"):
            config.tuner.name = "Counter"
        return config

    async def wait_for_state(self, experiment_id: str, *states: int) -> Any:
        """Wait for a state and return the experiment."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.experiments.wait(experiment_id, states)  # type: ignore[arg-type] # enum values


def raise_failure(name: str, error: BaseException) -> None:
    raise AssertionError(f"{name} failed") from error


@asynccontextmanager
async def manager_on(
    bus: Bus,
    folder: Path,
    listeners: InMemoryListeners,
    jobs: SimpleJobChecker | None = None,
    platforms: Collection[str] = PLATFORMS,
) -> AsyncIterator[Manager]:
    """Run a manager on a bus until the block ends; its state is that after a stop."""
    settings = Settings(
        home=folder / "nni",
        nats_url="",
        token="secret",
        version="1.2.3",
        grpc_address="",
        http_address="",
        dispatcher_address="",
        compressor_address="",
        nas_address="",
        replicas=1,
        default_root=folder / "experiments",
        stop_on_term=True,
        further_roots=(folder,),
    )
    blobs = DirectoryBlobStore(folder / "nni" / "blobs")
    stores = Stores(blobs, BlobViews(blobs))
    manager = build_with_local_adapters(
        settings,
        bus,
        stores,
        listeners,
        PickyChecker(),
        jobs or SimpleJobChecker(),
        platforms=platforms,
    )
    tasks = TaskOwner(raise_failure)
    await manager.registry.open()
    manager.agents.attach(manager.registry)
    tasks.start(manager.agents.listen(), "agents")
    try:
        yield manager
    finally:
        await tasks.aclose()
        await manager.registry.aclose()


@asynccontextmanager
async def world_on(
    bus: Bus,
    folder: Path,
    script: Callable[[ScriptedAgent, Held], Any] = succeed,
    platforms: Collection[str] = PLATFORMS,
) -> AsyncIterator[World]:
    """Run a manager and its fakes on a bus until the block ends."""
    listeners = InMemoryListeners()
    tasks = TaskOwner(raise_failure)
    agent = ScriptedAgent(bus, script)
    jobs = SimpleJobChecker()
    async with manager_on(bus, folder, listeners, jobs, platforms) as manager:
        tasks.start(agent.run(), "agent")
        tasks.start(agent.obey(), "orders")
        try:
            dispatcher = CountingDispatcher(bus)
            yield World(bus, folder, manager, listeners, dispatcher, agent, tasks, jobs)
        finally:
            await tasks.aclose()


async def stopped(world: World) -> str:
    """Run an experiment to its end and stop it; return its id."""
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, experiment_pb2.EXPERIMENT_STATE_DONE)
    await world.experiments.stop(experiment_id)
    actor = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        await actor.wait_for_effects()
    return experiment_id
