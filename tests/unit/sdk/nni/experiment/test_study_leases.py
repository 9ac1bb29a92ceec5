"""Renewal of leases in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from nni.experiment.errors import UnreachableError
from nni.experiment.study_leases import HeldTrial, LeaseKeeper

PATIENCE_S = 60.0
LONG_S = 1e6
"""A lease of which no third passes in a test."""
SHORT_S = 0.003


class Renewals:
    """Renewals that a test waits for, and what they return."""

    def __init__(self, lost: Sequence[str] = (), failures: int = 0) -> None:
        self.seen: list[list[HeldTrial]] = []
        self.lost = lost
        self.failures = failures
        self.enough = threading.Event()

    def __call__(self, held: Sequence[HeldTrial]) -> Sequence[str]:
        self.seen.append(list(held))
        if len(self.seen) > self.failures:
            self.enough.set()
            return self.lost
        raise UnreachableError("the manager does not answer")


def test_held_trials_are_renewed_together() -> None:
    renewals = Renewals()
    keeper = LeaseKeeper(renewals)
    keeper.hold("trial1", 1, LONG_S)
    keeper.hold("trial2", 2, LONG_S)
    keeper.hold("trial3", 1, LONG_S)
    keeper.release("trial3")

    keeper.renew_all()
    keeper.close()

    assert renewals.seen == [[("trial1", 1), ("trial2", 2)]]


def test_many_trials_are_renewed_in_several_calls() -> None:
    renewals = Renewals()
    keeper = LeaseKeeper(renewals)
    for number in range(1001):
        keeper.hold(f"trial{number}", 1, LONG_S)

    keeper.renew_all()
    keeper.close()

    assert [len(held) for held in renewals.seen] == [1000, 1]


def test_a_lost_trial_is_renewed_no_more(caplog: pytest.LogCaptureFixture) -> None:
    keeper = LeaseKeeper(Renewals(lost=["trial1"]))
    keeper.hold("trial1", 1, LONG_S)
    keeper.hold("trial2", 1, LONG_S)

    with caplog.at_level(logging.WARNING):
        keeper.renew_all()
    held = keeper.held
    keeper.close()

    assert held == [("trial2", 1)]
    assert "does not hold trial trial1" in caplog.text


def test_a_trial_that_is_told_or_asked_again_during_its_renewal_is_not_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def renew(held: Sequence[HeldTrial]) -> Sequence[str]:
        keeper.release("trial1")
        keeper.hold("trial2", 2, LONG_S)
        return [trial_id for trial_id, _ in held]

    keeper = LeaseKeeper(renew)
    keeper.hold("trial1", 1, LONG_S)
    keeper.hold("trial2", 1, LONG_S)

    with caplog.at_level(logging.WARNING):
        keeper.renew_all()
    held = keeper.held
    keeper.close()

    assert held == [("trial2", 2)]
    assert "does not hold" not in caplog.text


def test_a_trial_whose_end_is_being_reported_is_renewed_but_not_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    renewals = Renewals(lost=["trial1"])
    keeper = LeaseKeeper(renewals)
    keeper.hold("trial1", 1, LONG_S)

    keeper.expect_end("trial1")
    with caplog.at_level(logging.WARNING):
        keeper.renew_all()
    held = keeper.held
    keeper.close()

    assert renewals.seen == [[("trial1", 1)]]
    assert held == []
    assert "does not hold" not in caplog.text


def test_a_trial_that_is_asked_again_after_a_report_can_be_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keeper = LeaseKeeper(Renewals(lost=["trial1"]))
    keeper.hold("trial1", 1, LONG_S)
    keeper.expect_end("trial1")
    keeper.hold("trial1", 2, LONG_S)

    with caplog.at_level(logging.WARNING):
        keeper.renew_all()
    keeper.close()

    assert "does not hold trial trial1" in caplog.text


def test_the_thread_renews_and_outlives_a_failed_call() -> None:
    renewals = Renewals(failures=2)
    keeper = LeaseKeeper(renewals)

    keeper.hold("trial1", 1, SHORT_S)

    assert renewals.enough.wait(PATIENCE_S)
    keeper.close()


def test_the_thread_renews_a_trial_that_comes_after_all_were_released() -> None:
    renewed = {"trial1": threading.Event(), "trial2": threading.Event()}

    def renew(held: Sequence[HeldTrial]) -> Sequence[str]:
        for trial_id, _ in held:
            renewed[trial_id].set()
        return []

    keeper = LeaseKeeper(renew)
    keeper.hold("trial1", 1, SHORT_S)
    assert renewed["trial1"].wait(PATIENCE_S)

    keeper.release("trial1")
    keeper.hold("trial2", 1, SHORT_S)

    assert renewed["trial2"].wait(PATIENCE_S)
    keeper.close()


def test_nothing_is_renewed_after_the_end() -> None:
    keeper = LeaseKeeper(Renewals())
    keeper.hold("trial1", 1, LONG_S)

    keeper.close()
    keeper.close()
    keeper.hold("trial2", 1, LONG_S)
    keeper.close()

    assert keeper.held == []
