"""When a failing host is given up."""

from svc_dispatcher.domain.failures import FailureLedger
from svc_dispatcher.domain.values import Position


def test_third_death_on_the_same_event_is_hopeless() -> None:
    ledger = FailureLedger()
    at = Position(4, 0)

    counts = [ledger.note(at) for _ in range(3)]

    assert [ledger.hopeless(count) for count in counts] == [False, False, True]


def test_deaths_on_different_events_do_not_add_up() -> None:
    ledger = FailureLedger()

    counts = [ledger.note(Position(sequence, 0)) for sequence in range(10)]

    assert not any(ledger.hopeless(count) for count in counts)


def test_event_that_a_later_host_has_handled_is_acquitted() -> None:
    ledger = FailureLedger()
    at = Position(4, 0)
    ledger.note(at)
    ledger.note(at)

    ledger.handled(Position(3, 9))
    third = ledger.note(at)
    ledger.handled(at)

    assert third == 3
    assert ledger.note(at) == 1


def test_death_of_an_idle_host_is_blamed_on_no_event() -> None:
    ledger = FailureLedger()

    assert not any(ledger.hopeless(ledger.note(None)) for _ in range(10))
