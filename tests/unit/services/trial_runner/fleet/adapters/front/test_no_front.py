"""Tests of the front of an installation that has none."""

import asyncio

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError


async def test_it_cannot_be_opened_and_says_what_can_be_done() -> None:
    with pytest.raises(PlatformError, match="no TLS front") as caught:
        await NoFront().open()

    assert caught.value.permanent
    assert "local shape" in caught.value.remedy


async def test_it_has_no_endpoint_and_a_known_one_has_changed() -> None:
    front = NoFront()

    assert front.endpoint is None
    await front.wait_changed(FrontEndpoint("10.0.0.7:8081", "authority"))


async def test_it_is_the_same_for_all_platforms_and_never_changes() -> None:
    front = NoFront()
    waiting = asyncio.create_task(front.wait_changed(None))
    for _ in range(3):
        await asyncio.sleep(0)

    assert front.of_platform("pool", "joined") is front
    assert not waiting.done()
    waiting.cancel()
