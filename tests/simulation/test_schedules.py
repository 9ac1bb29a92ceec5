"""Random schedules and faults against the real decisions of manager, dispatcher and agent.

`tests.benchmarks.bench_simulator` runs thousands of schedules more. A failing test prints the
smallest scenario that still fails; `World(scenario).run().check()` runs it again.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from svc_manager.domain.failed_starts import HOLD_AFTER
from tests.support.simulation.scenario import (
    Algorithm,
    Fault,
    FaultKind,
    Noise,
    Scenario,
    UserAction,
    UserRequest,
    random_scenario,
)
from tests.support.simulation.world import World, check_equal_to_undisturbed

pytestmark = pytest.mark.timeout(300)
"""Seconds of work; minutes on a busy machine."""

SCHEDULES = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

DURATIONS = st.sampled_from([0.1, 0.5, 2.0, 10.0, 40.0, 90.0])
MOMENTS = st.floats(0.0, 60.0)
NOISE = st.builds(
    Noise,
    lost=st.sampled_from([0.0, 0.02, 0.2]),
    duplicated=st.sampled_from([0.0, 0.05, 0.3]),
    late=st.sampled_from([0.0, 0.02, 0.2]),
    late_s=st.sampled_from([0.1, 1.0, 10.0, 60.0]),
    deduplicates=st.booleans(),
)
FAULTS = st.lists(
    st.builds(Fault, MOMENTS, st.sampled_from(FaultKind), st.integers(0, 2), DURATIONS), max_size=12
).map(tuple)
REQUESTS = st.lists(st.builds(UserRequest, MOMENTS, st.sampled_from(UserAction)), max_size=5).map(
    tuple
)


@SCHEDULES
@given(
    st.builds(
        Scenario,
        seed=st.integers(0, 2**31 - 1),
        algorithm=st.sampled_from(Algorithm),
        trials=st.integers(1, 12),
        concurrency=st.integers(1, 5),
        agents=st.integers(1, 3),
        assessor=st.booleans(),
        trial_retries=st.integers(0, 2),
        retry_failed=st.integers(0, 1),
        include_intermediate=st.booleans(),
        loses_unrenewed=st.booleans(),
        max_duration_s=st.sampled_from([None, 10.0, 40.0]),
        noise=NOISE,
        faults=FAULTS,
        requests=REQUESTS,
        stopped_at_end=st.booleans(),
    )
)
def test_every_experiment_comes_to_its_end_with_each_trial_counted_once(
    scenario: Scenario,
) -> None:
    World(scenario).run().check()


@SCHEDULES
@given(
    st.builds(
        Scenario,
        seed=st.integers(0, 2**31 - 1),
        algorithm=st.sampled_from([Algorithm.RANDOM, Algorithm.GRID]),
        trials=st.integers(1, 12),
        concurrency=st.integers(1, 5),
        agents=st.integers(1, 3),
        trial_retries=st.just(1_000),
        loses_unrenewed=st.booleans(),
        noise=NOISE,
        faults=FAULTS,
    )
)
def test_faults_change_no_result(scenario: Scenario) -> None:
    check_equal_to_undisturbed(World(scenario).run())


@settings(SCHEDULES, max_examples=25)
@given(
    st.builds(
        Scenario,
        seed=st.integers(0, 2**31 - 1),
        algorithm=st.just(Algorithm.TPE),
        trials=st.integers(15, 30),
        concurrency=st.just(1),
        agents=st.integers(1, 2),
        trial_retries=st.just(1_000),
        noise=NOISE,
        faults=FAULTS,
    )
)
def test_faults_change_no_suggestion_of_a_learner_that_is_asked_one_by_one(
    scenario: Scenario,
) -> None:
    check_equal_to_undisturbed(World(scenario).run())


def test_a_full_disk_costs_neither_trials_nor_retries() -> None:
    scenario = Scenario(
        trials=8,
        concurrency=3,
        trial_retries=0,
        failing=False,
        faults=(Fault(0.0, FaultKind.FILL_DISK, lasts_s=90.0),),
    )

    world = World(scenario).run()

    world.check()
    trials = world.experiment.trials.values()
    assert [trial.state.name for trial in trials] == ["SUCCEEDED"] * 8
    assert sum(trial.interruptions.failed_starts for trial in trials) > HOLD_AFTER
    assert max(trial.losses for trial in trials) == 0


@pytest.mark.parametrize("kind", FaultKind)
@pytest.mark.parametrize("lasts_s", [0.3, 35.0, 100.0])
def test_each_fault_alone_is_survived_at_any_time(kind: FaultKind, lasts_s: float) -> None:
    for at_s in (0.01, 0.4, 1.7, 3.0, 6.5):
        scenario = Scenario(
            seed=int(at_s * 100),
            trials=6,
            concurrency=3,
            trial_retries=1_000,
            faults=(Fault(at_s, kind, 0, lasts_s),),
        )

        world = World(scenario).run()

        world.check()
        check_equal_to_undisturbed(world)


def test_equal_scenarios_have_equal_logs() -> None:
    scenario = random_scenario(12)

    logs = [World(scenario).run().bus.log for _ in range(2)]

    assert [batch.payload for batch in logs[0]] == [batch.payload for batch in logs[1]]


@pytest.mark.parametrize("kind", [FaultKind.SET_CLOCK_AHEAD, FaultKind.SET_CLOCK_BACK])
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("minutes", [0.1, 30.0, 120.0])
def test_clock_that_is_set_changes_no_duration(
    kind: FaultKind, restarted: bool, minutes: float
) -> None:
    limit_s = 200.0
    faults: tuple[Fault, ...] = (Fault(20.0, kind, 0, minutes),)
    if restarted:  # the clock is set while no manager is there
        faults = (Fault(19.0, FaultKind.KILL_MANAGER, 0, 2.0), *faults)
    scenario = Scenario(seed=3, trials=10_000, concurrency=2, max_duration_s=limit_s, faults=faults)

    world = World(scenario).run()

    world.check()
    assert world.last_trial_s == pytest.approx(limit_s, abs=65.0 if restarted else 5.0)
