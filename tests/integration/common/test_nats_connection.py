"""Connection to a real server of the bus: credentials, limits, outages, refusals."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from svc_common.errors import (
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_common.messaging.callback_queue import CallbackQueue
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_requests import DisconnectedError, NoRespondersError
from svc_common.messaging.nats_settings import NatsSettings
from tests.support import wait
from tests.support.servers import NatsServer, nats_server

TOKEN = "s3cr/et+"


@pytest.fixture
async def connection(shared_nats: NatsServer) -> Connection:
    opened = Connection(NatsSettings(shared_nats.url))
    await opened.open()
    return opened


async def test_right_token_is_accepted(tmp_path: Path) -> None:
    with nats_server(tmp_path, TOKEN) as server:
        async with asyncio.timeout(60), NatsBus(NatsSettings(server.url, TOKEN)) as bus:
            assert bus.connected


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_wrong_token_is_refused_at_once(tmp_path: Path, token: str | None) -> None:
    with nats_server(tmp_path, TOKEN) as server:
        bus = NatsBus(NatsSettings(server.url, token))
        with pytest.raises(UnauthenticatedError, match="refuses the credentials"):
            async with asyncio.timeout(60), bus:
                pass


@pytest.mark.parametrize("limit_s", [0.0, 0.1])
async def test_credentials_that_are_refused_later_are_noticed(
    tmp_path: Path, limit_s: float
) -> None:
    with nats_server(tmp_path, TOKEN) as server:
        async with asyncio.timeout(60), NatsBus(NatsSettings(server.url, TOKEN)) as bus:
            refused = asyncio.ensure_future(bus.wait_refused(limit_s))
            await asyncio.to_thread(server.stop)
            await bus.wait_connected(False)
            assert not refused.done()
            server.token = "another"

            await asyncio.to_thread(server.start)

            await refused


async def test_opening_waits_for_an_unreachable_server(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    server.start()
    server.stop()
    bus = NatsBus(NatsSettings(server.url))
    opening = asyncio.ensure_future(bus.__aenter__())
    await asyncio.sleep(0)

    await asyncio.to_thread(server.start)

    async with asyncio.timeout(60):
        await opening
    assert bus.connected
    await bus.aclose()
    server.stop()


async def test_opening_can_be_cancelled(tmp_path: Path) -> None:
    bus = NatsBus(NatsSettings("nats://127.0.0.1:9"))  # the discard port, which is closed

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), bus:
            pass

    assert not bus.connected


@pytest.mark.parametrize("url", ["127.0.0.1:4222", "http://x:1", "nats://"])
def test_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be nats://HOST:PORT"):
        Connection(NatsSettings(url))


async def test_password_is_not_in_the_error_of_a_bad_address() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Connection(NatsSettings("http://user:hunter2@host:1"))

    assert "hunter2" not in str(caught.value)


async def test_second_server_is_used_if_the_first_is_unreachable(shared_nats: NatsServer) -> None:
    connection = Connection(NatsSettings(f"nats://127.0.0.1:9,{shared_nats.url}"))

    async with asyncio.timeout(60):
        await connection.open()

    assert connection.connected
    await connection.aclose()


async def test_message_above_the_limit_is_refused_here(connection: Connection) -> None:
    with pytest.raises(ResourceExhaustedError, match="larger than the bus allows"):
        connection.publish("x", bytes(connection.max_payload + 1))

    await connection.aclose()


async def test_request_without_responder_fails_at_once(connection: Connection) -> None:
    with pytest.raises(NoRespondersError):
        await connection.request("no.responder", b"", timeout_s=60.0)

    await connection.aclose()


async def test_pending_requests_fail_when_the_bus_is_killed(own_nats: NatsServer) -> None:
    connection = Connection(NatsSettings(own_nats.url))
    await connection.open()
    connection.subscribe("silent", lambda *_: None)
    asking = [connection.request("silent", b"", timeout_s=60.0) for _ in range(3)]
    await connection.flush()

    own_nats.kill()
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert [type(result) for result in results] == [DisconnectedError] * 3
    assert not connection.publish("x", b"")
    await connection.aclose()


async def test_calls_after_the_close_are_refused(connection: Connection) -> None:
    await connection.aclose()
    await connection.aclose()

    with pytest.raises(UnavailableError):
        await connection.wait_connected()
    assert not connection.publish("x", b"")


@asynccontextmanager
async def connected(settings: NatsSettings) -> AsyncIterator[Connection]:
    connection = Connection(settings)
    async with asyncio.timeout(60):
        await connection.open()
        try:
            yield connection
        finally:
            await connection.aclose()


class Subscriber:
    """Payloads that a connection receives on one subject."""

    def __init__(self, connection: Connection, subject: str) -> None:
        self.payloads: CallbackQueue[bytes] = CallbackQueue()
        self.sid = connection.subscribe(subject, self._receive)

    def _receive(
        self, subject: str, reply: str, headers: Mapping[str, str], payload: bytes
    ) -> None:
        self.payloads.put(payload)


async def test_unsent_messages_are_dropped_at_a_disconnection(own_nats: NatsServer) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        subscriber = Subscriber(connection, "a.b")
        await connection.flush()

        own_nats.kill()
        connection.publish("a.b", b"before the loss is noticed")
        await connection.wait_disconnected()
        accepted_while_away = connection.publish("a.b", b"while away")
        own_nats.start()
        await connection.wait_connected()
        connection.publish("a.b", b"afterwards")

        assert not accepted_while_away
        assert await subscriber.payloads.get() == b"afterwards"


async def test_subscriptions_and_callbacks_survive_reconnections(own_nats: NatsServer) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        subscriber = Subscriber(connection, "a.*")
        changes: list[bool] = []
        connection.on_change(lambda: changes.append(connection.connected))

        for _ in range(2):
            own_nats.kill()
            await connection.wait_disconnected()
            own_nats.start()
            await connection.wait_connected()
            async with connected(NatsSettings(own_nats.url)) as other:
                other.publish("a.b", b"x")
                assert await subscriber.payloads.get() == b"x"

    assert changes == [True, True, False]


PERMISSIONS = """
authorization {
  users: [{
    user: "box", password: "pw"
    permissions: {
      publish: ["Mine.>", "_INBOX.box.>"]
      subscribe: {allow: ["Mine.>", "_INBOX.box.>"]}
    }
  }]
}
"""


@asynccontextmanager
async def confined(folder: Path) -> AsyncIterator[Connection]:
    with nats_server(folder, more=PERMISSIONS) as server:
        async with connected(NatsSettings(server.url, user="box", password="pw")) as connection:
            yield connection


async def test_forbidden_publication_fails_the_requests_to_its_subject_only(tmp_path: Path) -> None:
    async with confined(tmp_path) as connection:
        connection.subscribe("Mine.silent", lambda *_: None)
        allowed = connection.request("Mine.silent", b"", timeout_s=60.0)
        forbidden = connection.request("Others.Subject", b"", timeout_s=60.0)

        with pytest.raises(PermissionDeniedError, match=r"to publish to Others\.Subject"):
            await forbidden

        await connection.flush()
        assert not allowed.done()
        allowed.cancel()


async def test_forbidden_subscription_is_reported_for_its_subject_only(tmp_path: Path) -> None:
    async with confined(tmp_path) as connection:
        connection.subscribe("Others.Subject", lambda *_: None)
        connection.subscribe("Mine.a", lambda *_: None)
        await connection.flush()

        with pytest.raises(PermissionDeniedError, match=r"to listen to Others\.Subject"):
            connection.check_allowed("Others.Subject")
        connection.check_allowed("Mine.a")


async def test_connection_that_an_error_of_the_server_ended_is_opened_again(
    own_nats: NatsServer,
) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        subscriber = Subscriber(connection, "a")

        connection.publish("x" * 10_000, b"")  # "maximum control line exceeded"
        await connection.wait_disconnected()
        await connection.wait_connected()
        connection.publish("a", b"afterwards")

        assert await subscriber.payloads.get() == b"afterwards"


async def test_loss_that_a_publication_notices_first_is_followed_by_a_reconnection(
    own_nats: NatsServer,
) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        subscriber = Subscriber(connection, "a")
        accepted: list[bool] = []

        def fail(*_: object) -> None:
            # Runs after nats-py has begun to reconnect, before its transport is closed.
            asyncio.get_running_loop().call_soon(
                lambda: accepted.append(connection.publish("a", b"refused"))
            )
            raise ValueError("breaks the connection")

        broken = connection.subscribe("broken", fail)
        await connection.flush()

        connection.publish("broken", b"")
        await connection.wait_disconnected()
        connection.unsubscribe(broken)
        await connection.wait_connected()
        connection.publish("a", b"afterwards")

        assert accepted == [False]
        assert await subscriber.payloads.get() == b"afterwards"


async def test_server_in_lame_duck_mode_is_left_for_another(tmp_path: Path) -> None:
    with nats_server(tmp_path / "one") as one, nats_server(tmp_path / "two") as two:
        async with connected(NatsSettings(f"{one.url},{two.url}")) as connection:
            subscriber = Subscriber(connection, "a")

            one.send_signal(signal.SIGUSR2)
            await connection.wait_disconnected()
            await connection.wait_connected()
            async with connected(NatsSettings(two.url)) as other:
                other.publish("a", b"from the second server")
                assert await subscriber.payloads.get() == b"from the second server"


async def test_only_server_in_lame_duck_mode_is_used_until_it_ends(own_nats: NatsServer) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        own_nats.send_signal(signal.SIGUSR2)
        log = own_nats.folder / "nats.log"
        await asyncio.to_thread(
            wait.until, lambda: "lame duck mode" in log.read_text(), 60, "lame duck mode"
        )
        await connection.flush()

        assert connection.connected


async def test_drained_subscription_loses_nothing_that_was_sent_to_it(
    own_nats: NatsServer,
) -> None:
    async with (
        connected(NatsSettings(own_nats.url)) as receiving,
        connected(NatsSettings(own_nats.url)) as sending,
    ):
        for _ in range(20):
            subscriber = Subscriber(receiving, "a.*")
            await receiving.flush()
            last = -1

            async def send() -> None:
                nonlocal last
                for number in range(500):
                    sending.publish("a.b", b"%d" % number)
                    if number % 50 == 0:
                        await sending.flush()

            flood = asyncio.ensure_future(send())
            await subscriber.payloads.get()
            await receiving.drain(subscriber.sid)
            got = [int(payload) for payload in subscriber.payloads.take_all()]
            await flood

            assert got == list(range(1, len(got) + 1))
            await receiving.flush()
            assert subscriber.payloads.take_all() == []


async def test_answers_go_below_the_name_of_the_user(tmp_path: Path) -> None:
    async with confined(tmp_path) as connection:
        replies: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        connection.subscribe("Mine.a", lambda _, reply, *rest: replies.set_result(reply))
        asked = connection.request("Mine.a", b"", timeout_s=60.0)
        reply = await replies
        connection.publish(reply, b"answer")

        assert reply.startswith("_INBOX.box.")
        assert (await asked)[1] == b"answer"
        assert connection.new_inbox().startswith("_INBOX.box.")


async def test_sender_waits_while_the_server_does_not_read(own_nats: NatsServer) -> None:
    async with connected(NatsSettings(own_nats.url)) as connection:
        own_nats.send_signal(signal.SIGSTOP)
        waiting = asyncio.ensure_future(connection.writable())
        while not connection.congested or waiting.done():  # the server stops a moment later
            connection.publish("a", bytes(500_000))
            await asyncio.sleep(0)
            if waiting.done():
                waiting = asyncio.ensure_future(connection.writable())
            await asyncio.sleep(0)
        still_waiting = not waiting.done()
        own_nats.send_signal(signal.SIGCONT)
        await waiting

        assert still_waiting
        assert not connection.congested


async def test_silent_server_is_given_up(own_nats: NatsServer) -> None:
    async with connected(NatsSettings(own_nats.url, heartbeat_s=1.0)) as connection:
        subscriber = Subscriber(connection, "a")
        asked = connection.request("silent", b"", timeout_s=60.0)

        own_nats.send_signal(signal.SIGSTOP)
        await connection.wait_disconnected()
        own_nats.send_signal(signal.SIGCONT)
        await connection.wait_connected()
        connection.publish("a", b"afterwards")

        assert await subscriber.payloads.get() == b"afterwards"
        await asyncio.gather(asked, return_exceptions=True)
