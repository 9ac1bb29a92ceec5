"""What does a trial cost the dispatcher and its host, in CPU time and in waiting?

A real nats-server, the dispatcher as a process, one experiment with 8 slots; this script is the
manager and lets every trial report one result and end at once, each step an append of its own.
Not counted: manager, agent, the trials themselves.

    python tests/benchmarks/bench_dispatcher.py [--trials 1000] [--tuner Random] [--rate 100]
"""

import argparse
import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import aclosing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from tests.benchmarks.guard import run_guarded
from tests.integration.dispatcher.host_processes import host_pid
from tests.support.scripted_manager import (
    ScriptedManager,
    ended,
    metric,
    named,
    scheduled,
    trial_of,
)
from tests.support.servers import nats_server

SLOTS = 8
SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-5, 1e-1]},
    "momentum": {"_type": "uniform", "_value": [0, 1]},
    "layers": {"_type": "randint", "_value": [1, 8]},
    "units": {"_type": "choice", "_value": [16, 32, 64, 128]},
    "optimizer": {"_type": "choice", "_value": ["adam", "sgd"]},
}


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pss_mb(pid: int) -> float:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    line = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(line.split()[1]) / 1024


async def read_answers(
    manager: ScriptedManager, answers: dict[str, asyncio.Future[event_pb2.ParametersGenerated]]
) -> None:
    """Resolve the answer of each request as it comes in."""
    after = await manager.bus.inbox.last_sequence(manager.id)
    async with aclosing(manager.bus.inbox.follow(manager.id, after)) as batches:
        async for batch in batches:
            for message in batch:
                answer = inbox_pb2.InboxMessage.FromString(message.payload).parameters_generated
                answers[answer.request_id].set_result(answer)


async def drive(manager: ScriptedManager, trials: int, rate: float) -> list[float]:
    """Run the trials; give seconds from each request to its answer in the INBOX."""
    waits: list[float] = []
    answers: dict[str, asyncio.Future[event_pb2.ParametersGenerated]] = defaultdict(
        asyncio.get_running_loop().create_future
    )
    reader = asyncio.create_task(read_answers(manager, answers))
    slots = asyncio.Semaphore(SLOTS)
    lock = asyncio.Lock()

    async def one() -> None:
        async with lock:
            request_id = await manager.ask(1)
        asked_at_s = time.perf_counter()
        answer = await answers[request_id]
        waits.append(time.perf_counter() - asked_at_s)
        (item,) = answer.parameters
        steps = (
            (
                event_pb2.Event(parameters_generated=answer),
                scheduled(trial_of(item.parameter_id), item.parameter_id, item.parameters),
            ),
            (event_pb2.Event(trial_started=event_pb2.TrialStarted(trial_id="any")),),
            (metric(item.parameter_id, item.parameter_id % 17 / 17),),
            (ended(item.parameter_id),),
        )
        for step in steps:
            async with lock:
                await manager.append(*step)
        slots.release()

    async with asyncio.TaskGroup() as group:
        start = time.perf_counter()
        for number in range(trials):
            await slots.acquire()
            ahead = number / rate - (time.perf_counter() - start)
            if ahead > 0:
                await asyncio.sleep(ahead)
            group.create_task(one())
    reader.cancel()
    return waits


async def run(arguments: argparse.Namespace, folder: Path) -> None:
    with nats_server(folder / "nats") as server:
        environment = os.environ | {"NNI_NATS_URL": server.url, "NNI_TOKEN": "t"}
        service = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "svc_dispatcher",
            env=environment | {"NNI_HOME": str(folder), "NNI_LOG_LEVEL": "warning"},
        )
        async with NatsBus(NatsSettings(server.url)) as bus:
            manager = ScriptedManager(bus, "bench", folder)
            reader = asyncio.create_task(manager.read_inbox())
            created = time.perf_counter()
            await manager.create(SPACE, tuner=named(arguments.tuner))
            await manager.received("algorithm_started")
            ready_s = time.perf_counter() - created
            await manager.generate(1)
            pids = {"dispatcher": service.pid, "host": host_pid(manager)}
            before = {name: cpu_s(pid) for name, pid in pids.items()}
            start = time.perf_counter()
            reader.cancel()
            waits = await drive(manager, arguments.trials, arguments.rate)
            wall_s = time.perf_counter() - start
            await asyncio.sleep(0.2)
            spent = {name: cpu_s(pid) - before[name] for name, pid in pids.items()}
            print(f"algorithm ready {ready_s * 1e3:.0f} ms after creation")
            print(f"{arguments.trials} trials, {arguments.trials / wall_s:.0f}/s")
            for name, seconds in spent.items():
                per_trial_ms = seconds / arguments.trials * 1e3
                print(f"CPU {name}: {per_trial_ms:.2f} ms/trial; PSS {pss_mb(pids[name]):.0f} MB")
            quantiles = statistics.quantiles(waits, n=20)
            print(
                f"request to answer: median {statistics.median(waits) * 1e3:.1f} ms, "
                f"95 % {quantiles[-1] * 1e3:.1f} ms"
            )
            reader = asyncio.create_task(manager.read_inbox())
            start = time.perf_counter()
            os.kill(pids["host"], 9)
            await manager.generate(1)
            print(f"killed host answers again after {(time.perf_counter() - start) * 1e3:.0f} ms")
            reader.cancel()
        service.terminate()
        await service.wait()


def main() -> None:
    run_guarded()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--tuner", default="Random")
    parser.add_argument("--rate", type=float, default=1e6, help="trials per second, at most")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"tuner {arguments.tuner}, seed 7, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(arguments, Path(folder)))


if __name__ == "__main__":
    main()
