import pytest

from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    Closed,
    DirectoryKnown,
    Ended,
    JournalRecord,
    JournalState,
    ProcessIdentity,
    Progressed,
    Redelivered,
    ServerEnded,
    ServerStarted,
    Started,
    TaskDecision,
    decide_task,
    is_outdated,
)

KEY = AttemptKey("exp", "aaaaa", 1)
CLAIM = Claimed(KEY, "c1", "secret", "ack.1")


def folded(*records: JournalRecord) -> JournalState:
    state = JournalState()
    for record in records:
        state.fold(record)
    return state


@pytest.mark.parametrize(
    ("running", "ended", "decision"),
    [
        ([], [], TaskDecision.TAKE),
        ([KEY], [], TaskDecision.RUNNING),
        ([], [KEY], TaskDecision.ENDED),
        ([AttemptKey("exp", "aaaaa", 2)], [], TaskDecision.TAKE),
    ],
)
def test_task_is_taken_unless_its_attempt_runs_or_has_run(
    running: list[AttemptKey], ended: list[AttemptKey], decision: TaskDecision
) -> None:
    assert decide_task(KEY, running, ended) is decision


@pytest.mark.parametrize(
    ("order", "task", "expected"),
    [(4, 5, True), (1, 5, True), (5, 5, False), (6, 5, False), (0, 5, False), (3, 0, False)],
)
def test_order_of_a_manager_that_cannot_know_the_task_is_outdated(
    order: int, task: int, expected: bool
) -> None:
    assert is_outdated(order, task) is expected


def test_claim_collects_its_records() -> None:
    leader = ProcessIdentity(7, 99)

    state = folded(
        CLAIM, Redelivered("c1", "ack.2"), Started("c1", leader), Progressed("c1", 4), Ended("c1")
    )

    claim = state.claims["c1"]
    assert claim.ack_subject == "ack.2"
    assert claim.leader == leader
    assert claim.next_sequence == 4
    assert claim.ended


def test_new_claim_has_no_process_and_no_report() -> None:
    state = folded(CLAIM)

    claim = state.claims["c1"]
    assert (claim.leader, claim.next_sequence, claim.ended) == (None, 0, False)
    assert state.records() == [CLAIM]


def test_closed_claim_is_forgotten() -> None:
    assert folded(CLAIM, Closed("c1")).claims == {}


def test_record_of_an_unknown_claim_changes_nothing() -> None:
    assert folded(Started("c9", ProcessIdentity(1, 1)), Closed("c9")) == JournalState()


def test_directory_is_known_until_it_is_forgotten() -> None:
    state = folded(DirectoryKnown("exp", "/a"), DirectoryKnown("other", "/b"))
    state.fold(DirectoryKnown("exp", ""))

    assert state.directories == {"other": "/b"}


def test_shortest_journal_adds_up_to_the_same_state() -> None:
    state = folded(
        DirectoryKnown("exp", "/a"),
        ServerStarted(ProcessIdentity(5, 50)),
        Claimed(AttemptKey("exp", "bbbbb", 1), "c0", "t", "ack.0"),
        Closed("c0"),
        CLAIM,
        Started("c1", ProcessIdentity(7, 99)),
        Progressed("c1", 4),
        Ended("c1"),
    )

    assert folded(*state.records()) == state
    assert len(state.records()) == 6


def test_server_that_has_ended_is_forgotten() -> None:
    first, second = ProcessIdentity(5, 50), ProcessIdentity(5, 60)  # the number is used again

    state = folded(ServerStarted(first), ServerStarted(second), ServerEnded(first))

    assert state.servers == [second]


def test_secret_of_a_claim_is_not_shown() -> None:
    record = Claimed(KEY, "c1", "hidden", "ack.1")

    assert "hidden" not in f"{record} {folded(record)}"


def test_removed_folder_that_was_never_known_changes_nothing() -> None:
    assert folded(DirectoryKnown("exp", "")) == JournalState()
