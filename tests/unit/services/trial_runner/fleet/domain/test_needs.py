import pytest

from svc_trial_runner.fleet.domain.needs import (
    PoolLimits,
    PoolNeed,
    PoolPlatform,
    default_slots,
)


def test_platforms_of_one_name_have_keys_of_their_own() -> None:
    platforms = tuple(PoolPlatform(name, {}) for name in ("slurm", "remote", "slurm"))

    assert list(PoolNeed("p", platforms=platforms).sections) == ["slurm", "remote", "slurm-2"]


@pytest.mark.parametrize("value", [0, -1, "4", None, 1.5])
def test_slots_that_are_no_number_are_not_configured(value: object) -> None:
    assert PoolPlatform("remote", {"slots": value}).slots is None


def test_agents_are_reused_unless_the_section_refuses() -> None:
    assert PoolPlatform("remote", {}).reuses
    assert not PoolPlatform("remote", {"reuseMode": False}).reuses


@pytest.mark.parametrize(
    ("concurrency", "machines", "slots"),
    [(8, 2, 4), (7, 2, 4), (1, 5, 1), (8, None, 1), (8, 0, 1), (0, 5, 1)],
)
def test_concurrency_is_divided_by_the_machines(
    concurrency: int, machines: int | None, slots: int
) -> None:
    assert default_slots(concurrency, machines) == slots


@pytest.mark.parametrize(
    ("platform", "options", "own"),
    [
        ("remote", {}, False),
        ("remote", {"slots": 1}, True),
        ("remote", {"slots": 0}, False),
        ("remote", {"machineList": [{"host": "a"}, {"host": "b", "slots": 2}]}, True),
        ("remote", {"machineList": [{"host": "a"}], "gpuIndices": [0], "name": "x"}, False),
        ("joined", {}, True),
    ],
)
def test_slots_are_configured_for_all_or_a_machine_or_by_people(
    platform: str, options: dict[str, object], *, own: bool
) -> None:
    assert PoolPlatform(platform, options).has_own_slots is own


@pytest.mark.parametrize(
    ("limits", "limit_s"),
    [
        (PoolLimits(), None),
        (PoolLimits(max_agent_s=0.0), 0.0),
        (PoolLimits(max_cost=3.0), None),
        (PoolLimits(max_cost=3.0, cost_per_agent_hour=0.0), None),
        (PoolLimits(max_cost=3.0, cost_per_agent_hour=2.0), 5400.0),
        (PoolLimits(max_cost=0.0, cost_per_agent_hour=2.0, max_agent_s=9.0), 0.0),
        (PoolLimits(max_cost=3.0, cost_per_agent_hour=2.0, max_agent_s=60.0), 60.0),
    ],
)
def test_smaller_limit_of_time_and_cost_counts(limits: PoolLimits, limit_s: float | None) -> None:
    assert limits.time_limit_s == limit_s


def test_pool_without_a_demand_needs_nothing() -> None:
    need = PoolNeed("p")

    assert (need.waiting, need.running, need.concurrency) == (0, 0, 1)
    assert (need.closed, need.draining) == (False, False)
    assert (need.log_sequence, need.created_at_ns) == (0, 0)


def test_pool_without_limits_has_no_agent_that_stays_for_longer_than_a_minute() -> None:
    limits = PoolLimits()

    assert (limits.min_agents, limits.max_agents, limits.idle_s) == (0, None, 60.0)
