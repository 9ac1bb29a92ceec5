"""Tests of the names of pools."""

import pytest

from nni_wire.pools import (
    LOCAL_POOL,
    broken_name_rule,
    experiment_of_pool,
    experiment_pool,
    pool_of_check,
)


def test_pools_of_experiments_have_different_names() -> None:
    pools = {LOCAL_POOL, experiment_pool("abcd1234"), experiment_pool("local")}

    assert len(pools) == 3


def test_experiment_of_its_pool_is_found_again() -> None:
    assert experiment_of_pool(experiment_pool("abcd1234")) == "abcd1234"
    assert experiment_of_pool(LOCAL_POOL) is None


@pytest.mark.parametrize("name", ["gpus", "a", "lab-2", "exp", "x" * 40])
def test_valid_name_of_a_pool_of_the_installation_breaks_no_rule(name: str) -> None:
    assert broken_name_rule(name) == ""


@pytest.mark.parametrize(
    "name",
    ["", LOCAL_POOL, experiment_pool("a"), pool_of_check("a"), "A", "a_b", "-a", "a-", "x" * 41],
)
def test_name_that_could_be_that_of_another_pool_breaks_a_rule(name: str) -> None:
    assert broken_name_rule(name).startswith("must")
