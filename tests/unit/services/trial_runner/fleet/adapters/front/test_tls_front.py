"""Tests of opening and closing the TLS front."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from svc_common.clock import ManualClock, SystemClock
from svc_trial_runner.enrolment import AUTHORITY_PROTOCOL
from svc_trial_runner.fleet.adapters.front.tls_front import FrontSettings, TlsFront
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.ports import free_port
from tests.support.tls_fronts import FEW, connect, tls_front

pytest.importorskip("cryptography")


async def test_front_is_open_until_its_last_pool_releases_it(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        first = await front.of_platform("exp-a", "joined").open()
        assert await front.of_platform("exp-b", "kubernetes").open() == first
        await front.release("exp-a")
        assert front.open_for_pools == {"exp-b"}

        await front.release("exp-b")

        assert front.endpoint is None
        with pytest.raises(OSError):  # noqa: PT011 - refused
            await connect(first, AUTHORITY_PROTOCOL)


async def test_front_that_is_opened_again_has_the_same_address_and_authority(
    tmp_path: Path,
) -> None:
    async with tls_front(tmp_path, {}) as front:
        first = await front.open_for("exp-a/joined")
        await front.close_for("exp-a/joined")

        assert await front.open_for("exp-a/joined") == first


async def test_pool_whose_name_begins_like_another_one_is_not_released(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        await front.open_for("exp-ab/joined")

        await front.release("exp-a")

        assert front.endpoint is not None


async def test_front_on_loopback_is_opened_for_other_machines_only_if_it_is_published(
    tmp_path: Path,
) -> None:
    port = free_port()
    for published in (False, True):
        settings = FrontSettings(tmp_path, "127.0.0.1", port)
        settings = replace(settings, published=True) if published else settings
        front = TlsFront(settings, {}, FEW, SystemClock())
        try:
            if published:
                opened = await front.open_for("exp-a/joined", "gate.example.org")
                assert opened.address == f"gate.example.org:{port}"
            else:
                with pytest.raises(PlatformError, match="only, not for nniManagerIp"):
                    await front.open_for("exp-a/joined", "gate.example.org")
        finally:
            await front.aclose()


async def test_clients_read_the_authority(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        endpoint = await front.open_for("exp-a/joined")
        reader, writer = await connect(endpoint, AUTHORITY_PROTOCOL)

        assert (await reader.read()).decode() == endpoint.authority

        writer.close()


async def test_certificate_is_renewed_while_the_front_is_open(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with tls_front(tmp_path, {}, FEW, clock) as front:
        await front.open_for("exp-a/joined")
        before = front.certificate
        assert before is not None
        clock.step(before.expires_at.timestamp() - clock.now().timestamp() - 3600)

        await front.renew()

        renewed = front.certificate

        assert renewed is not None
        assert renewed.authority == before.authority
        assert renewed.expires_at > before.expires_at


async def test_host_of_a_pool_is_that_of_its_agents_only(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        own = await front.of_platform("exp-a", "slurm").open()
        named = await front.of_platform("exp-b", "slurm", "127.0.0.2").open()

    assert named.address == f"127.0.0.2:{own.address.rpartition(':')[2]}"
    assert named.authority == own.authority


@pytest.mark.parametrize("host", ["10.0.0.7:80", "a b", "https://a"])
async def test_host_of_a_pool_is_a_name_or_an_address(tmp_path: Path, host: str) -> None:
    async with tls_front(tmp_path, {}) as front:
        with pytest.raises(PlatformError, match="nniManagerIp"):
            await front.of_platform("exp-a", "slurm", host).open()

        assert front.endpoint is None


async def test_opening_and_closing_are_changes_of_the_endpoint(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        opening = asyncio.ensure_future(front.wait_changed(None))
        endpoint = await front.open_for("exp-a/joined")
        await opening
        closing = asyncio.ensure_future(front.wait_changed(endpoint))

        await front.close_for("exp-a/joined")

        await closing
        assert front.endpoint is None


async def test_front_in_a_container_is_reached_by_the_engine_whatever_its_name(
    tmp_path: Path,
) -> None:
    settings = FrontSettings(tmp_path / "front", "localhost", free_port(), published=True)
    front = TlsFront(settings, {}, FEW, SystemClock())
    try:
        endpoint = await front.open_for("desks/joined")
        elsewhere = await front.open_for("gpus/remote", "gate.example.org")
        assert front._listener is not None
        bound = front._listener._listening.getsockname()[0]
    finally:
        await front.aclose()

    assert endpoint.address == f"localhost:{settings.port}"
    assert elsewhere.address == f"gate.example.org:{settings.port}"
    assert bound in {"::", "0.0.0.0"}


async def test_fresh_certificate_is_not_renewed(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        await front.renew()
        assert front.certificate is None
        await front.open_for("exp-a/joined")
        before = front.certificate

        await front.renew()

        assert front.certificate is before


async def test_added_route_is_served_from_the_next_opening_on(tmp_path: Path) -> None:
    async def greet(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        writer.write(address.encode())
        await writer.drain()

    async with tls_front(tmp_path, {}) as front:
        front.add_route("greet", greet)
        reader, writer = await connect(await front.open_for("exp-a/joined"), "greet")

        assert await reader.read() == b"127.0.0.1"

        writer.close()


async def until_asleep(clock: ManualClock) -> None:
    """Wait until the front waits for its next renewal."""
    while not clock.sleepers:  # noqa: ASYNC110 - a clock has no event, and a thread works meanwhile
        await asyncio.sleep(0)


async def test_open_front_renews_its_certificate_by_itself(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with tls_front(tmp_path, {}, FEW, clock) as front, asyncio.timeout(30):
        await front.open_for("exp-a/joined")
        before = front.certificate
        assert before is not None
        await until_asleep(clock)
        clock.step(before.expires_at.timestamp() - clock.now().timestamp() - 7 * 3600)

        clock.advance(6 * 3600 - 1)
        await asyncio.sleep(0)
        early = front.certificate
        clock.advance(1)
        await until_asleep(clock)

        assert early is before
        assert front.certificate is not None
        assert front.certificate.expires_at > before.expires_at


async def test_failed_renewal_is_tried_again(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    later_s = 8000 * 24 * 3600.0  # beyond the time of the authority: another one is refused
    async with tls_front(tmp_path, {}, FEW, clock) as front, asyncio.timeout(30):
        await front.open_for("exp-a/joined")
        before = front.certificate
        assert before is not None
        await until_asleep(clock)
        clock.step(later_s)
        clock.advance(6 * 3600)
        await until_asleep(clock)
        failed = front.certificate

        clock.step(60 * 24 * 3600.0 - later_s)
        clock.advance(6 * 3600)
        await until_asleep(clock)

        assert failed is before
        assert front.certificate is not None
        assert front.certificate.expires_at > before.expires_at


async def test_front_has_no_endpoint_after_it_was_closed_twice(tmp_path: Path) -> None:
    async with tls_front(tmp_path, {}) as front:
        assert front.endpoint is None
        assert front.certificate is None
        await front.open_for("exp-a/joined")
        certificate = front.certificate

        await front.aclose()
        await front.aclose()

        assert front.endpoint is None
        assert front.certificate is certificate
