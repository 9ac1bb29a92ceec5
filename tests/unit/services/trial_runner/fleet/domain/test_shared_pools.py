from dataclasses import replace

from svc_trial_runner.fleet.domain.needs import PoolLimits, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.shared_pools import PoolDefinition, SharedPool

GPUS = PoolDefinition("gpus", (PoolPlatform("slurm", {}),), PoolLimits(max_agents=3), revision=5)
ONE = PoolNeed("gpus", waiting=2, running=1, concurrency=4, log_sequence=10)
TWO = PoolNeed("gpus", waiting=3, running=0, concurrency=2, gpus_per_trial=1, log_sequence=7)


def shared_pool(definition: PoolDefinition = GPUS) -> SharedPool:
    pool = SharedPool()
    pool.define(definition)
    pool.demand("exp-one", ONE)
    pool.demand("exp-two", TWO)
    return pool


def test_need_is_the_sum_of_the_demands_on_the_platforms_of_the_definition() -> None:
    need = shared_pool().need

    assert need == PoolNeed("gpus", 5, 1, 6, 1, GPUS.platforms, GPUS.limits, log_sequence=5)


def test_demands_without_a_definition_get_no_agents() -> None:
    pool = SharedPool()

    pool.demand("exp-one", ONE)

    assert pool.need is None


def test_ended_experiments_demand_nothing() -> None:
    pool = shared_pool()

    pool.demand("exp-one", replace(ONE, closed=True, log_sequence=11))
    pool.demand("exp-two", replace(TWO, closed=True, log_sequence=8))

    assert pool.need == PoolNeed("gpus", 0, 0, 1, None, GPUS.platforms, GPUS.limits, log_sequence=5)


def test_older_messages_change_nothing() -> None:
    pool = shared_pool()
    before = pool.need

    pool.define(replace(GPUS, draining=True, revision=4))
    pool.demand("exp-one", replace(ONE, waiting=99, log_sequence=9))

    assert pool.need == before


def test_message_of_the_same_revision_or_sequence_holds() -> None:
    pool = shared_pool()

    pool.define(replace(GPUS, draining=True))
    pool.demand("exp-one", replace(ONE, waiting=99))

    assert pool.need is not None
    assert (pool.need.draining, pool.need.waiting) == (True, 99 + TWO.waiting)


def test_draining_and_removal_are_those_of_the_definition() -> None:
    pool = shared_pool(replace(GPUS, draining=True))
    assert pool.need is not None
    assert pool.need.draining

    pool.define(replace(GPUS, removed=True, revision=6))

    assert pool.need.closed


def test_removed_definition_makes_room_for_a_new_one() -> None:
    pool = shared_pool(replace(GPUS, removed=True))

    pool.forget_removed()
    pool.define(replace(GPUS, revision=1))

    assert pool.definition == replace(GPUS, revision=1)
    pool.forget_removed()
    assert pool.definition is not None


def test_pool_of_the_same_name_is_another_one_though_its_revision_is_smaller() -> None:
    pool = shared_pool(replace(GPUS, removed=True, created_at_ns=2_000))

    pool.define(replace(GPUS, revision=4, created_at_ns=1_000))

    assert pool.need is not None
    assert not pool.need.closed
    assert (pool.need.log_sequence, pool.need.created_at_ns) == (4, 1_000)


def test_new_pool_of_a_name_takes_agents_at_once() -> None:
    definition = PoolDefinition("gpus")
    need = shared_pool(definition).need

    assert (definition.revision, definition.created_at_ns) == (0, 0)
    assert need is not None
    assert (need.closed, need.draining) == (False, False)
