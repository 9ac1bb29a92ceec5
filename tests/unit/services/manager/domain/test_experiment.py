import itertools

import pytest

from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.fold import fold
from svc_manager.domain.state import Experiment
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
