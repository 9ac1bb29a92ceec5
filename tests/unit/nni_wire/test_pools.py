"""Tests of the names of pools."""

from nni_wire.pools import LOCAL_POOL, experiment_pool


def test_pools_of_experiments_have_different_names() -> None:
    pools = {LOCAL_POOL, experiment_pool("abcd1234"), experiment_pool("local")}

    assert len(pools) == 3
