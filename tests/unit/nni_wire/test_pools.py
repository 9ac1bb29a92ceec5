"""Tests of the names of pools."""

from nni_wire.pools import LOCAL_POOL, experiment_of_pool, experiment_pool


def test_pools_of_experiments_have_different_names() -> None:
    pools = {LOCAL_POOL, experiment_pool("abcd1234"), experiment_pool("local")}

    assert len(pools) == 3


def test_experiment_of_its_pool_is_found_again() -> None:
    assert experiment_of_pool(experiment_pool("abcd1234")) == "abcd1234"
    assert experiment_of_pool(LOCAL_POOL) is None
