"""Tests of the front of an installation that has none."""

import pytest

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.ports import PlatformError


async def test_it_cannot_be_opened_and_says_what_can_be_done() -> None:
    with pytest.raises(PlatformError, match="no TLS front") as caught:
        await NoFront().open()

    assert caught.value.permanent
    assert "local shape" in caught.value.remedy
