"""Fold of an exploration: what its strategy is sent, and which reports are due."""

from __future__ import annotations

from svc_nas.domain import events, strategy_lines
from svc_nas.domain.exploration import Exploration
from svc_nas.domain.reports import (
    Candidate,
    CandidatesGenerated,
    GaveUp,
    Report,
    Started,
    TrialStopped,
)

SETUP = events.ExplorationCreated("0" * 64, "Random", "E", "simplified", "", "/code", 2, seed=1)


def parameters(number: int) -> dict[str, object]:
    return {"sample": {"width": number}}


def candidate(number: int, process: str = "a") -> Candidate:
    return Candidate(f"{process}-{number}", parameters(number))


def recorded(
    number: int, parameter_id: int, request_id: str = "", process: str = "a"
) -> events.CandidatesRecorded:
    one = events.RecordedCandidate(parameter_id, f"{process}-{number}", parameters(number))
    return events.CandidatesRecorded(request_id, (one,), exhausted=False)


def running(*more: events.Event) -> Exploration:
    """Return an exploration whose process is ready, after its start is in the log."""
    exploration = Exploration()
    for event in (
        SETUP,
        events.AlgorithmRequested(1, "/exp", "nas"),
        events.AlgorithmStarted(1),
        events.StateChanged("RUNNING"),
        *more,
    ):
        exploration.feed(event)
    exploration.apply(strategy_lines.Ready())
    return exploration


def due(exploration: Exploration) -> list[Report]:
    found = []
    while (report := exploration.next_report()) is not None:
        found.append(report)
    return found


def submit(exploration: Exploration, *candidates: Candidate) -> None:
    for one in candidates:
        exploration.apply(strategy_lines.Submitted(one))


def test_start_is_reported_once_when_the_document_was_opened() -> None:
    exploration = Exploration()
    exploration.feed(SETUP)
    exploration.feed(events.AlgorithmRequested(1, "/exp", "nas"))
    before = due(exploration)

    exploration.apply(strategy_lines.Ready())

    assert (before, due(exploration), due(exploration)) == ([], [Started(1)], [])


def test_request_waits_for_a_candidate_and_its_rest_is_deferred() -> None:
    exploration = running(events.TrialsRequested("1-0", (0, 1, 2)))
    before = due(exploration)

    submit(exploration, candidate(8))

    assert before == []
    assert due(exploration) == [CandidatesGenerated("1-0", ((0, candidate(8)),), deferred=2)]


def test_deferred_ids_get_later_candidates() -> None:
    exploration = running(events.TrialsRequested("1-0", (0, 1)))
    submit(exploration, candidate(8))
    due(exploration)
    exploration.feed(recorded(8, 0, "1-0"))

    submit(exploration, candidate(9))

    assert due(exploration) == [CandidatesGenerated("", ((1, candidate(9)),))]


def test_end_of_the_search_answers_requests_and_deferred_ids() -> None:
    exploration = running(events.TrialsRequested("1-0", (0, 1)))
    submit(exploration, candidate(8))
    due(exploration)
    exploration.apply(strategy_lines.Exhausted())
    unconfirmed = due(exploration)
    exploration.feed(recorded(8, 0, "1-0"))
    exploration.feed(events.TrialsRequested("1-1", (2,)))

    reports = due(exploration)

    assert unconfirmed == []
    assert reports == [
        CandidatesGenerated("1-1", (), exhausted=True),
        CandidatesGenerated("", (), exhausted=True),
    ]
    assert not exploration.wants_strategy


def test_pause_holds_candidates_back_until_it_ends() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)), events.BudgetChanged(0))
    submit(exploration, candidate(8))
    paused = due(exploration)

    exploration.feed(events.BudgetChanged(2))

    assert paused == []
    assert due(exploration) == [CandidatesGenerated("1-0", ((0, candidate(8)),))]


def test_strategy_follows_the_trials_of_its_own_candidates_only() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(8))
    due(exploration)
    for event in (
        recorded(8, 0, "1-0"),
        events.TrialScheduled("t", 0),
        events.TrialScheduled("of a user", 5),
        events.TrialLost("t"),
        events.MetricReported("t", 0.5, is_final=True),
        events.MetricReported("of a user", 0.7, is_final=True),
        events.TrialEnded("t", "SUCCEEDED"),
    ):
        exploration.feed(event)

    assert exploration.take_lines() == [
        strategy_lines.Scheduled("a-8", "t"),
        strategy_lines.Lost("a-8"),
        strategy_lines.Measured("a-8", 0.5, is_final=True),
        strategy_lines.Ended("a-8", succeeded=True),
    ]


def test_new_process_is_sent_what_the_log_has() -> None:
    exploration = running(
        events.TrialsRequested("1-0", (0,)), recorded(8, 0, "1-0"), events.TrialScheduled("t", 0)
    )

    assert exploration.take_lines() == [
        strategy_lines.Added("a-8", parameters(8)),
        strategy_lines.Scheduled("a-8", "t"),
    ]


def test_same_model_of_an_earlier_process_for_the_same_id_is_counted_once() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(8, "b"))
    due(exploration)

    exploration.feed(recorded(8, 0, "1-0", process="a"))
    exploration.feed(events.TrialScheduled("t", 0))

    assert exploration.take_lines() == [strategy_lines.Scheduled("b-8", "t")]


def test_candidate_that_lost_its_id_gets_another_one() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(9, "b"))
    due(exploration)

    exploration.feed(recorded(8, 0, "1-0", process="a"))
    exploration.feed(events.TrialsRequested("1-1", (1,)))

    assert exploration.take_lines() == [strategy_lines.Added("a-8", parameters(8))]
    assert due(exploration) == [CandidatesGenerated("1-1", ((1, candidate(9, "b")),))]


def test_shorter_answer_of_an_earlier_process_leaves_candidates_for_deferred_ids() -> None:
    exploration = running(events.TrialsRequested("1-0", (0, 1)))
    submit(exploration, candidate(8, "b"), candidate(9, "b"))
    due(exploration)

    exploration.feed(recorded(8, 0, "1-0", process="a"))

    assert due(exploration) == [CandidatesGenerated("", ((1, candidate(9, "b")),))]


def test_no_process_is_started_before_the_log_has_what_was_reported() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(8))
    due(exploration)
    exploration.drop_process()
    before = exploration.has_unconfirmed

    exploration.feed(recorded(8, 0, "1-0"))

    assert (before, exploration.has_unconfirmed) == (True, False)


def test_process_that_ends_takes_its_unreported_candidates_with_it() -> None:
    exploration = running()
    submit(exploration, candidate(8))

    exploration.drop_process()
    exploration.feed(events.TrialsRequested("1-0", (0,)))

    assert due(exploration) == []


def test_resumed_strategy_submits_again_what_was_not_evaluated() -> None:
    exploration = running(
        recorded(7, 0),
        events.TrialScheduled("done", 0),
        events.TrialEnded("done", "SUCCEEDED"),
        recorded(8, 1),
        events.TrialScheduled("stopped", 1),
        events.TrialEnded("stopped", "SYS_CANCELED"),
        recorded(9, 2),
        events.StateChanged("DONE"),
        events.ExperimentEnded(),
        events.AlgorithmRequested(2, "/exp", "nas"),
    )

    assert exploration.take_lines() == [
        strategy_lines.Added("a-7", parameters(7)),
        strategy_lines.Scheduled("a-7", "done"),
        strategy_lines.Ended("a-7", succeeded=True),
    ]
    assert exploration.generation == 2


def test_limits_close_and_open_the_experiment_for_the_strategy() -> None:
    exploration = running(events.StateChanged("NO_MORE_TRIAL"), events.StateChanged("RUNNING"))

    assert exploration.take_lines() == [
        strategy_lines.Closed("NO_MORE_TRIAL", is_final=False),
        strategy_lines.Opened(),
    ]


def test_finished_experiment_wants_no_strategy_until_its_limit_is_raised() -> None:
    exploration = running(events.StateChanged("DONE"))
    at_the_end = exploration.wants_strategy

    exploration.feed(events.StateChanged("RUNNING"))

    assert (at_the_end, exploration.wants_strategy) == (False, True)


def test_stops_are_reported() -> None:
    exploration = running()
    exploration.apply(strategy_lines.StopWanted("t"))

    assert due(exploration) == [TrialStopped("t")]


def test_failure_gives_the_generation_up_once() -> None:
    exploration = running()
    exploration.apply(strategy_lines.Failed("ImportError: m"))

    assert due(exploration) == [GaveUp(1, "ImportError: m")]
    assert not exploration.wants_strategy


def test_nothing_is_reported_after_the_end() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(8))

    exploration.feed(events.ExperimentEnded())

    assert due(exploration) == []


def test_moved_experiment_has_its_new_folders() -> None:
    exploration = running(events.ExperimentMoved("/new", "/new code"))

    assert exploration.directory == "/new"
    assert exploration.setup is not None
    assert exploration.setup.code_directory == "/new code"


def test_exploration_before_its_first_start_wants_and_reports_nothing() -> None:
    exploration = Exploration()

    assert (exploration.generation, exploration.wanted, exploration.directory) == (0, False, "")
    assert exploration.wants_strategy is False
    exploration.feed(events.ExperimentMoved("/new", "/new code"))
    exploration.feed(SETUP)
    exploration.feed(events.StateChanged("RUNNING"))

    assert exploration.concurrency == 2
    assert (due(exploration), exploration.take_lines()) == ([], [])


def test_strategy_is_wanted_from_the_start_on() -> None:
    exploration = Exploration()
    exploration.feed(SETUP)

    exploration.feed(events.AlgorithmRequested(1, "/exp", "nas"))

    assert exploration.wants_strategy
    assert exploration.directory == "/exp"


def test_process_is_sent_changes_of_the_concurrency_once() -> None:
    exploration = running(events.BudgetChanged(5))

    assert exploration.take_lines() == [strategy_lines.Resized(5)]
    assert exploration.take_lines() == []


def test_result_that_was_not_taken_is_known() -> None:
    exploration = running(recorded(8, 0), events.TrialScheduled("t", 0))
    before = exploration.has_result

    exploration.feed(events.TrialEnded("t", "FAILED"))

    assert (before, exploration.has_result) == (False, True)
    exploration.take_lines()
    assert not exploration.has_result


def test_process_that_ends_takes_its_stop_requests_with_it() -> None:
    exploration = running()
    exploration.apply(strategy_lines.StopWanted("t"))

    exploration.drop_process()

    assert not exploration.is_ready
    assert due(exploration) == []


def test_candidates_of_an_exhausted_strategy_outlast_its_process() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)))
    submit(exploration, candidate(8))
    exploration.apply(strategy_lines.StopWanted("t"))
    exploration.apply(strategy_lines.Exhausted())

    exploration.drop_process()

    assert due(exploration) == [
        TrialStopped("t"),
        CandidatesGenerated("1-0", ((0, candidate(8)),), exhausted=True),
    ]


def test_recorded_candidate_takes_its_deferred_id() -> None:
    exploration = running(
        events.TrialsRequested("1-0", (0, 1)), recorded(8, 0, "1-0"), recorded(9, 1)
    )

    submit(exploration, candidate(7))

    assert due(exploration) == []


def test_end_in_the_log_ends_deferred_ids_and_the_strategy() -> None:
    exploration = running(
        events.TrialsRequested("1-0", (0, 1)),
        events.CandidatesRecorded("1-0", (), exhausted=True),
    )

    submit(exploration, candidate(7))

    assert due(exploration) == []
    assert not exploration.wants_strategy


def test_experiment_that_is_open_is_opened_once() -> None:
    exploration = running(
        events.StateChanged("NO_MORE_TRIAL"),
        events.StateChanged("RUNNING"),
        events.StateChanged("RUNNING"),
    )

    assert exploration.take_lines().count(strategy_lines.Opened()) == 1


def test_move_without_new_folders_keeps_the_old_ones() -> None:
    exploration = running(events.ExperimentMoved("", ""))

    assert exploration.directory == "/exp"
    assert exploration.setup == SETUP


def test_one_trial_at_once_is_no_pause() -> None:
    exploration = running(events.TrialsRequested("1-0", (0, 1)), events.BudgetChanged(1))

    submit(exploration, candidate(8))

    assert due(exploration) == [CandidatesGenerated("1-0", ((0, candidate(8)),), deferred=1)]


def test_end_of_the_search_is_reported_during_a_pause() -> None:
    exploration = running(events.TrialsRequested("1-0", (0,)), events.BudgetChanged(0))

    exploration.apply(strategy_lines.Exhausted())

    assert due(exploration) == [CandidatesGenerated("1-0", (), exhausted=True)]


def resume(exploration: Exploration, generation: int = 2) -> None:
    """End the experiment and start it again, without a folder of its own."""
    exploration.feed(events.ExperimentEnded())
    exploration.feed(events.AlgorithmRequested(generation, "", "nas"))


def test_next_generation_forgets_requests_answers_and_candidates() -> None:
    exploration = running(
        events.TrialsRequested("a", (0, 1)),
        recorded(7, 0, "a"),
        events.TrialsRequested("b", (2,)),
        events.TrialsRequested("c", (3,)),
    )
    submit(exploration, candidate(8))
    assert due(exploration) == [CandidatesGenerated("b", ((2, candidate(8)),))]
    exploration.take_lines()

    resume(exploration)
    exploration.feed(events.AlgorithmStarted(2))
    exploration.feed(events.TrialScheduled("t", 0))
    submit(exploration, candidate(9))

    assert not exploration.has_unconfirmed
    assert due(exploration) == []
    assert exploration.take_lines() == []
    exploration.feed(events.TrialsRequested("b", (2,)))
    assert due(exploration) == [CandidatesGenerated("b", ((2, candidate(9)),))]


def test_next_generation_starts_and_gives_up_anew() -> None:
    exploration = running()
    exploration.fail("first")
    assert due(exploration) == [GaveUp(1, "first")]

    resume(exploration)

    assert exploration.wants_strategy
    assert exploration.directory == "/exp"
    assert due(exploration) == [Started(2)]
    exploration.fail("second")
    exploration.fail("third")
    assert due(exploration) == [GaveUp(2, "second")]


def test_next_generation_searches_on_after_an_end_in_the_log() -> None:
    exploration = running(
        events.CandidatesRecorded("", (), exhausted=True), events.StateChanged("DONE")
    )
    exploration.take_lines()

    resume(exploration)
    exploration.feed(events.StateChanged("RUNNING"))

    assert exploration.wants_strategy
    assert exploration.take_lines() == []


def test_each_generation_reports_its_end() -> None:
    exploration = running()
    exploration.apply(strategy_lines.Exhausted())
    reports = []
    for generation in (1, 2):
        if generation > 1:
            resume(exploration, generation)
        exploration.feed(events.AlgorithmStarted(generation))
        exploration.feed(events.TrialsRequested("a", (0, 1)))
        exploration.feed(recorded(8, 0, "a"))
        reports.append(due(exploration))

    assert reports == [[CandidatesGenerated("", (), exhausted=True)]] * 2


def test_candidate_that_a_later_generation_evaluated_is_kept() -> None:
    exploration = running(
        recorded(8, 0), events.TrialScheduled("t", 0), events.TrialEnded("t", "SYS_CANCELED")
    )
    exploration.feed(events.BudgetChanged(3))
    resume(exploration)
    for event in (
        recorded(8, 1),
        events.TrialScheduled("u", 1),
        events.TrialEnded("u", "SUCCEEDED"),
    ):
        exploration.feed(event)

    resume(exploration, 3)

    assert exploration.take_lines() == [
        strategy_lines.Resized(3),
        strategy_lines.Added("a-8", parameters(8)),
        strategy_lines.Scheduled("a-8", "u"),
        strategy_lines.Ended("a-8", succeeded=True),
    ]
