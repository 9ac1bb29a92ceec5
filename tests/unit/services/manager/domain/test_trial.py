import itertools

import pytest

from nni_proto.trial.v1 import trial_pb2
from svc_manager.domain.trial import (
    FINAL_STATES,
    LIVE_STATES,
    NO_INTERRUPTIONS,
    TRANSITIONS,
    Interruptions,
    Trial,
    TrialState,
)
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


def test_numbers_of_states_are_those_of_the_contract() -> None:
    contract = {f"TRIAL_STATE_{state.name}": state.value for state in TrialState}

    assert contract | {"TRIAL_STATE_UNSPECIFIED": 0} == dict(trial_pb2.TrialState.items())


def test_trial_without_failures_has_had_no_interruptions() -> None:
    rare = trial_in(TrialState.RUNNING).interruptions

    assert rare is NO_INTERRUPTIONS
    assert (rare.failed_starts, rare.own_failed_starts, rare.resumed_losses) == (0, 0, 0)


def test_attempts_that_never_started_are_those_without_another_cause() -> None:
    trial = trial_in(TrialState.WAITING)
    trial.attempt, trial.losses, trial.failures = 12, 1, 2
    trial.rare = Interruptions(failed_starts=3, own_failed_starts=1, resumed_losses=4)

    assert trial.never_started == 1


@pytest.mark.parametrize(
    ("reached", "resumed", "progressed"),
    [(None, None, False), (3, None, True), (3, 2, True), (3, 3, False), (2, 3, False)],
)
def test_attempt_progresses_with_a_later_step_than_all_before_it(
    reached: int | None, resumed: int | None, progressed: bool
) -> None:
    trial = trial_in(TrialState.RUNNING)
    trial.rare = Interruptions(reached_step=reached, resumed_step=resumed)

    assert trial.progressed is progressed
