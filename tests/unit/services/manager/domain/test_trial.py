import itertools

import pytest

from svc_manager.domain.trial import FINAL_STATES, LIVE_STATES, TRANSITIONS, Trial, TrialState
from svc_manager.domain.values import ParameterSource

ALL_PAIRS = list(itertools.product(TrialState, TrialState))

# Written out a second time on purpose: a change of the table must be a change of mind.
LEGAL = {
    "WAITING": "WAITING RUNNING FAILED USER_CANCELED SYS_CANCELED EARLY_STOPPED",
    "RUNNING": "WAITING UNKNOWN SUCCEEDED FAILED USER_CANCELED SYS_CANCELED EARLY_STOPPED",
    "UNKNOWN": "WAITING RUNNING SUCCEEDED FAILED USER_CANCELED SYS_CANCELED EARLY_STOPPED",
}


def trial_in(state: TrialState) -> Trial:
    return Trial("abcde", 0, 0, b"", b"", ParameterSource.ALGORITHM, "local", 0, state)


@pytest.mark.parametrize(("before", "after"), ALL_PAIRS)
def test_a_trial_changes_as_the_table_says_and_no_other_way(
    before: TrialState, after: TrialState
) -> None:
    trial = trial_in(before)

    if after.name in LEGAL.get(before.name, "").split():
        trial.change(after)
        assert trial.state is after
    else:
        with pytest.raises(ValueError, match="cannot go from"):
            trial.change(after)
        assert trial.state is before


def test_final_states_never_change() -> None:
    assert all(not TRANSITIONS[state] for state in FINAL_STATES)


def test_unknown_counts_as_live() -> None:
    assert TrialState.UNKNOWN in LIVE_STATES
    assert trial_in(TrialState.UNKNOWN).live
