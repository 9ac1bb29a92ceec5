import itertools

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from svc_manager.domain.experiment import Budget, ExperimentSettings, ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import OptimizeMode
from tests.unit.services.manager.building import change

# Written out a second time on purpose: a change of the table must be a change of mind.
LEGAL = {
    "INITIALIZED": "RUNNING ERROR STOPPING",
    "RUNNING": "NO_MORE_TRIAL TUNER_NO_MORE_TRIAL DONE ERROR STOPPING",
    "NO_MORE_TRIAL": "RUNNING TUNER_NO_MORE_TRIAL DONE ERROR STOPPING",
    "TUNER_NO_MORE_TRIAL": "RUNNING NO_MORE_TRIAL DONE ERROR STOPPING",
    "DONE": "RUNNING ERROR STOPPING",
    "ERROR": "STOPPING",
    "STOPPING": "STOPPED",
    "STOPPED": "INITIALIZED VIEWED",
    "VIEWED": "STOPPED INITIALIZED",
}


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(ExperimentState, ExperimentState))
)
def test_an_experiment_changes_as_the_table_says_and_no_other_way(
    before: ExperimentState, after: ExperimentState
) -> None:
    experiment = Experiment(state=before)
    changed = change(before, after)

    if after.name in LEGAL[before.name].split():
        fold(experiment, changed, 1)
        assert experiment.state is after
    else:
        with pytest.raises(ValueError, match="cannot go from"):
            fold(experiment, changed, 1)


def test_settings_that_no_one_gives_ask_for_nothing_more() -> None:
    settings = ExperimentSettings()

    assert (settings.debug, settings.include_intermediate_results) == (False, False)
    assert (settings.retry_failed_trials, settings.least_concurrency) == (0, 1)
    assert (settings.platforms, settings.limits, settings.algorithm_service) == ((), (), "")
    assert settings.optimize_mode is OptimizeMode.MAXIMIZE
    assert (settings.max_trial_retries, settings.lease_ms) == (2, 0)
    assert Budget() == Budget(1, None, None)


@pytest.mark.parametrize(("lease_ms", "has_callers"), [(0, False), (1, True)])
def test_an_experiment_with_leases_has_callers(lease_ms: int, has_callers: bool) -> None:
    assert ExperimentSettings(lease_ms=lease_ms).has_callers is has_callers


def test_numbers_of_states_are_those_of_the_contract() -> None:
    contract = {f"EXPERIMENT_STATE_{state.name}": state.value for state in ExperimentState}

    expected = dict(experiment_pb2.ExperimentState.items())
    assert contract | {"EXPERIMENT_STATE_UNSPECIFIED": 0} == expected
