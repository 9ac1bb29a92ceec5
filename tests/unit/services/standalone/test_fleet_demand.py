import asyncio
import socket

from svc_standalone.fleet_demand import FleetDemand


async def test_demand_is_there_when_the_manager_has_sent_a_byte() -> None:
    demand = FleetDemand()
    with socket.socket(fileno=socket.dup(demand.child_end.fileno())) as inherited:
        waiting = asyncio.ensure_future(demand.wait())
        await asyncio.sleep(0)
        assert not waiting.done()

        inherited.send(b".")

        async with asyncio.timeout(30):
            await waiting
    demand.close()
    demand.close()


async def test_each_byte_is_one_request() -> None:
    demand = FleetDemand()
    demand.child_end.send(b"..")

    async with asyncio.timeout(5):
        await demand.wait()
        await demand.wait()

    third = asyncio.ensure_future(demand.wait())
    await asyncio.sleep(0)
    assert not third.done()
    third.cancel()
    demand.close()
