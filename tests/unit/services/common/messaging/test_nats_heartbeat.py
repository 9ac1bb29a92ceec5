"""A connection that answers lives; one that does not is given up."""

import asyncio

from svc_common.messaging.nats_heartbeat import Heartbeat

SOON_S = 0.001


class Peer:
    """The other end: it answers so many pings."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.pings = 0
        self.given_up = asyncio.Event()
        self.heartbeat = Heartbeat(self.ping, self.given_up.set, SOON_S)

    def ping(self) -> None:
        self.pings += 1
        if self.pings <= self.answers:
            self.heartbeat.answered()


async def test_peer_that_falls_silent_is_given_up() -> None:
    peer = Peer(answers=3)

    peer.heartbeat.start()
    await asyncio.wait_for(peer.given_up.wait(), 10)

    assert peer.pings == 4


async def test_new_connection_owes_no_answer_of_the_old_one() -> None:
    peer = Peer(answers=0)
    peer.heartbeat.start()
    await asyncio.wait_for(peer.given_up.wait(), 10)
    peer.given_up.clear()
    peer.pings, peer.answers = 0, 2

    peer.heartbeat.start()
    await asyncio.wait_for(peer.given_up.wait(), 10)

    assert peer.pings == 3


async def test_nothing_is_sent_after_the_end() -> None:
    peer = Peer(answers=100)
    peer.heartbeat.start()

    peer.heartbeat.stop()
    peer.heartbeat.stop()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(3 * SOON_S, later.set)
    await asyncio.wait_for(later.wait(), 10)

    assert peer.pings == 0
