"""Limit on restarts of a failing host."""

from svc_dispatcher.domain.failures import FailureLedger
from svc_dispatcher.domain.values import Position


def test_third_death_on_the_same_event_is_given_up() -> None:
    ledger = FailureLedger()
    at = Position(4, 0)

    counts = [ledger.record_failure(at) for _ in range(3)]

    assert [ledger.is_exhausted(count) for count in counts] == [False, False, True]


def test_deaths_on_different_events_do_not_add_up() -> None:
    ledger = FailureLedger()

    counts = [ledger.record_failure(Position(sequence, 0)) for sequence in range(10)]

    assert not any(ledger.is_exhausted(count) for count in counts)


def test_event_that_a_later_host_has_handled_is_cleared() -> None:
    ledger = FailureLedger()
    at = Position(4, 0)
    ledger.record_failure(at)
    ledger.record_failure(at)

    ledger.handled(Position(3, 9))
    third = ledger.record_failure(at)
    ledger.handled(at)

    assert third == 3
    assert ledger.record_failure(at) == 1


def test_death_of_an_idle_host_is_blamed_on_no_event() -> None:
    ledger = FailureLedger()

    assert [ledger.record_failure(None) for _ in range(10)] == [0] * 10
