import pytest

from svc_common.access.failure_limit import FAILURES_ALLOWED, WINDOW_S, FailureLimit
from svc_common.errors import ResourceExhaustedError

FAR = "192.0.2.7"


def failed(limit: FailureLimit, address: str, times: int, now_s: float = 0.0) -> None:
    for _ in range(times):
        limit.check(address, None, now_s)
        limit.failed(address, now_s)


def test_address_above_the_limit_waits_until_the_window_ends() -> None:
    limit = FailureLimit()
    failed(limit, FAR, FAILURES_ALLOWED)

    with pytest.raises(ResourceExhaustedError) as caught:
        limit.check(FAR, None, WINDOW_S / 2)

    assert caught.value.facts["retry_after_s"] == str(round(WINDOW_S / 2))
    limit.check(FAR, None, WINDOW_S)


def test_valid_credentials_of_a_limited_address_wait_too() -> None:
    limit = FailureLimit()
    failed(limit, FAR, FAILURES_ALLOWED)

    with pytest.raises(ResourceExhaustedError):
        limit.check(FAR, "alice", 1.0)


def test_caller_that_succeeded_before_is_never_limited() -> None:
    limit = FailureLimit()
    limit.succeeded(FAR, "alice")
    failed(limit, FAR, FAILURES_ALLOWED)

    limit.check(FAR, "alice", 1.0)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_valid_credentials_on_loopback_are_never_limited(address: str) -> None:
    limit = FailureLimit()
    failed(limit, address, FAILURES_ALLOWED)

    limit.check(address, "alice", 1.0)


def test_other_addresses_are_not_limited() -> None:
    limit = FailureLimit()
    failed(limit, FAR, FAILURES_ALLOWED)

    limit.check("192.0.2.8", None, 1.0)


def test_memory_is_bounded() -> None:
    limit = FailureLimit(allowed=1, addresses_limit=10)
    for number in range(100):
        limit.failed(f"192.0.2.{number}", 0.0)
        limit.succeeded(f"192.0.2.{number}", "alice")

    limit.check("192.0.2.0", None, 0.0)
    with pytest.raises(ResourceExhaustedError):
        limit.check("192.0.2.99", None, 0.0)
