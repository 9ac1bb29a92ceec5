import pytest

from svc_trial_runner.fleet.domain.needs import PoolNeed, PoolPlatform, default_slots


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
    ("concurrency", "machines", "slots"), [(8, 2, 4), (7, 2, 4), (1, 5, 1), (8, None, 1), (8, 0, 1)]
)
def test_concurrency_is_divided_by_the_machines(
    concurrency: int, machines: int | None, slots: int
) -> None:
    assert default_slots(concurrency, machines) == slots
