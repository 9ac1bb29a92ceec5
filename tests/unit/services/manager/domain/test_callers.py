from __future__ import annotations

from svc_manager.domain.callers import LATE_MS, Callers, Claim
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.domain.shared_study import LEASE_MS, asked, study_lab


def running() -> tuple[Experiment, Claim]:
    """Return an experiment with one running trial, and its claim."""
    lab = study_lab()
    return lab.experiment, asked(lab, "ask-1", "caller-1")


def test_a_running_attempt_gets_a_whole_lease_once() -> None:
    experiment, claim = running()
    callers = Callers()

    callers.grant(experiment, 5_000)
    callers.grant(experiment, 6_000)

    assert callers.next_lapse_ms == 5_000 + LEASE_MS
    assert callers.take_lapsed(5_000 + LEASE_MS - 1) == []
    assert callers.take_lapsed(5_000 + LEASE_MS) == [claim]
    assert callers.take_lapsed(5_000 + LEASE_MS) == []


def test_a_renewal_by_the_owner_begins_a_whole_lease() -> None:
    experiment, claim = running()
    callers = Callers()
    callers.grant(experiment, 0)

    assert callers.renew(experiment, "caller-1", [claim], 7_000) == []

    assert callers.next_lapse_ms == 7_000 + LEASE_MS


def test_a_renewal_by_another_caller_or_of_another_attempt_changes_nothing() -> None:
    experiment, claim = running()
    callers = Callers()
    callers.grant(experiment, 0)

    others = callers.renew(experiment, "caller-2", [claim], 7_000)
    later = callers.renew(experiment, "caller-1", [Claim(claim.trial_id, 2)], 7_000)
    unknown = callers.renew(experiment, "caller-1", [Claim("none", 1)], 7_000)

    assert others == later == [claim.trial_id]
    assert unknown == ["none"]
    assert callers.next_lapse_ms == LEASE_MS


def test_a_trial_that_has_ended_has_no_lease() -> None:
    experiment, claim = running()
    callers = Callers()
    callers.grant(experiment, 0)
    experiment.live[claim.trial_id].change(TrialState.SUCCEEDED)

    callers.grant(experiment, 1)

    assert callers.next_lapse_ms is None


def test_a_step_of_the_clock_lapses_no_lease() -> None:
    experiment, _ = running()
    callers = Callers()
    callers.grant(experiment, 0)

    callers.shift(3_600_000)

    assert callers.take_lapsed(3_600_000) == []
    assert callers.next_lapse_ms == 3_600_000 + LEASE_MS


def test_a_lapse_counts_up_to_five_seconds_after_the_end_of_the_lease() -> None:
    experiment, claim = running()
    in_time, late = Callers(), Callers()
    for callers in (in_time, late):
        callers.grant(experiment, 0)

    assert in_time.take_lapsed(LEASE_MS + 5_000) == [claim]
    assert late.take_lapsed(LEASE_MS + 5_001) == []


def test_a_lapse_that_a_held_up_manager_sees_late_is_not_believed() -> None:
    experiment, _ = running()
    callers = Callers()
    callers.grant(experiment, 0)
    late_ms = LEASE_MS + LATE_MS + 1

    assert callers.take_lapsed(late_ms) == []
    callers.grant(experiment, late_ms)

    assert callers.next_lapse_ms == late_ms + LEASE_MS
