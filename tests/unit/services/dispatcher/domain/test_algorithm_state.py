"""The fold of the log: commands for a host, and reports that are new."""

import weakref
from dataclasses import replace
from typing import Any

import pytest

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.algorithm_state import AlgorithmState
from svc_dispatcher.domain.values import (
    AlgorithmChoice,
    ExperimentSetup,
    Position,
    Suggestion,
    generation_seed,
)


def setup(**changes: Any) -> ExperimentSetup:
    values: dict[str, Any] = {
        "experiment_id": "exp",
        "directory": "/root/exp",
        "interpreter": "",
        "tuner": AlgorithmChoice(name="TPE"),
        "assessor": None,
        "advisor": None,
        "search_space": "space",
        "seed": 5,
        "log_level": "info",
    }
    return ExperimentSetup(**(values | changes))


class Log:
    """Log that is fed to an `AlgorithmState`, one event a batch."""

    def __init__(self, **changes: Any) -> None:
        self.state = AlgorithmState()
        self.last = Position(0, 0)
        self.add(events.ExperimentCreated(setup(**changes)), events.AlgorithmRequested(1))

    def add(self, *added: events.Event) -> Position:
        for event in added:
            self.last = Position(self.last.sequence + 1, 0)
            self.state.feed(self.last, event)
        return self.last

    def live(self) -> list[commands.Command]:
        self.state.go_live()
        return self.state.take_commands()

    def new(self) -> list[commands.Command]:
        return self.state.take_commands()

    def run_trial(self, number: int, value: object = 1.0, state: str = "SUCCEEDED") -> None:
        self.add(*answered(number), reported(number, value), events.TrialEnded(f"t{number}", state))


def answered(number: int, *, customized: bool = False) -> tuple[events.Event, ...]:
    parameters = f"p{number}"
    return (
        events.TrialsRequested(f"r{number}", (number,)),
        events.ParametersGenerated(f"r{number}", ((number, parameters),)),
        events.TrialScheduled(f"t{number}", number, parameters, customized),
    )


def reported(number: int, value: object, *, final: bool = True) -> events.MetricReported:
    return events.MetricReported(f"t{number}", 1, number, final, 0, value)


def generated(number: int, parameters: str, at: Position) -> answers.Generated:
    return answers.Generated(at, f"r{number}", (Suggestion(number, parameters, None),))


READY = answers.Ready(lookahead=False, assesses=False, provenance=())


def test_nothing_is_commanded_before_the_log_was_read_to_its_end() -> None:
    log = Log()

    assert log.new() == []
    assert isinstance(log.live()[0], commands.Initialize)


def test_first_command_builds_the_algorithm_with_the_space_in_force() -> None:
    log = Log()

    (initialize,) = log.live()

    assert isinstance(initialize, commands.Initialize)
    assert (initialize.search_space, initialize.seed) == ("space", 5)


def test_first_command_names_the_end_of_the_log() -> None:
    log = Log()
    log.add(*answered(0))

    initialize = log.live()[0]

    assert isinstance(initialize, commands.Initialize)
    assert initialize.log_end == log.last


def test_replayed_request_says_nothing_and_is_followed_by_what_the_log_holds() -> None:
    log = Log()
    log.add(*answered(0))

    _, generate, recorded = log.live()

    assert generate == commands.Generate(generate.position, "r0", (0,), replayed=True)
    assert recorded == commands.Recorded(generate.position, ((0, "p0"),))


def test_request_without_an_answer_in_the_log_is_asked_again() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0,)))

    _, generate = log.live()

    assert generate == commands.Generate(at, "r0", (0,))
    assert log.state.new_reports(generated(0, "p0", at)) == [generated(0, "p0", at)]


def test_same_answer_in_the_log_needs_no_command() -> None:
    log = Log()
    log.live()
    at = log.add(events.TrialsRequested("r0", (0,)))
    log.state.new_reports(generated(0, "p0", at))
    log.new()

    log.add(events.ParametersGenerated("r0", ((0, "p0"),)))

    assert log.new() == []


def test_other_answer_in_the_log_wins() -> None:
    log = Log()
    log.live()
    at = log.add(events.TrialsRequested("r0", (0,)))
    log.state.new_reports(generated(0, "mine", at))
    log.new()

    at = log.add(events.ParametersGenerated("r0", ((0, "theirs"),)))

    assert log.new() == [commands.Recorded(at, ((0, "theirs"),))]


def test_answer_of_an_earlier_dispatcher_that_comes_first_is_not_repeated() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0,)))
    log.live()
    log.add(events.ParametersGenerated("r0", ((0, "theirs"),)))

    news = log.state.new_reports(generated(0, "mine", at))

    assert news == []
    assert log.new() == [commands.Recorded(at, ((0, "theirs"),))]


def test_late_parameters_are_reported_once() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0, 1)))
    log.live()
    late = answers.Generated(
        at, "", (Suggestion(1, "p1", None),), exhausted=False, deferred=0, released_checkpoints=()
    )

    assert log.state.new_reports(late) == [late]
    log.add(events.ParametersGenerated("", ((1, "p1"),)))
    assert log.new() == []


def test_late_parameters_that_the_log_holds_are_not_reported_again() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0, 1)))
    log.add(
        events.ParametersGenerated("r0", ((0, "p0"),)),
        events.ParametersGenerated("", ((1, "p1"),)),
    )

    last = log.live()[-1]
    news = log.state.new_reports(answers.Generated(at, "", (Suggestion(1, "p1", None),)))

    assert last == commands.Recorded(log.last, ((1, "p1"),))
    assert news == []


def test_late_exhaustion_is_reported_once() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0,)))
    log.add(events.ParametersGenerated("r0", ()))
    log.live()
    exhausted = answers.Generated(at, "", (), exhausted=True)

    assert log.state.new_reports(exhausted) == [exhausted]
    log.add(events.ParametersGenerated("", (), exhausted=True, based_on=at))
    assert log.state.new_reports(exhausted) == []


def test_algorithm_is_idle_when_nothing_is_outstanding_and_no_trial_is_live() -> None:
    log = Log()
    log.live()
    steps: list[events.Event] = [
        events.AlgorithmStarted(1),
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), deferred=1),
        events.TrialScheduled("t0", 0, "p0", customized=False),
        events.TrialEnded("t0", "SUCCEEDED"),
        events.ParametersGenerated("", ((1, "p1"),)),
    ]

    idle = []
    for step in steps:
        log.add(step)
        idle.append(log.state.idle)

    assert idle == [True, False, False, False, False, True]


def test_result_and_end_of_a_trial_are_sent_in_order() -> None:
    log = Log()
    log.live()
    log.run_trial(0, value=0.5)

    found = log.new()[-2:]

    assert [type(command) for command in found] == [commands.TellMetric, commands.TellEnd]
    assert found[0].value == 0.5  # type: ignore[union-attr]  # of the type just asserted


def test_intermediate_results_are_sent_only_to_algorithms_that_read_them() -> None:
    without, with_assessor = Log(), Log(assessor=AlgorithmChoice(name="Medianstop"))
    for log in (without, with_assessor):
        log.add(*answered(0))
        log.live()
        log.add(reported(0, 0.1, final=False))

    assert without.new() == []
    assert len(with_assessor.new()) == 1


def test_stop_is_advised_once_and_only_for_live_trials() -> None:
    log = Log()
    log.add(*answered(0), *answered(1), events.TrialStopRequested("t1"))
    log.live()
    zero, one, gone = (answers.StopAdvised(log.last, f"t{number}") for number in (0, 1, 2))

    assert log.state.new_reports(zero) == [zero]
    assert log.state.new_reports(zero) == []
    assert log.state.new_reports(one) == []
    assert log.state.new_reports(gone) == []


def test_start_is_reported_once_per_generation() -> None:
    log = Log()
    log.live()

    assert log.state.new_reports(READY) == [answers.Started(1, READY)]
    log.add(events.AlgorithmStarted(1))
    assert log.state.new_reports(READY) == []


def test_exception_in_the_log_is_not_reported_again() -> None:
    log = Log()
    at = log.add(*answered(0), reported(0, 1.0))
    log.add(events.AlgorithmFailed("receive_trial_result", at))
    log.live()

    known = answers.CallFailed(at, "receive_trial_result", "...", skipped=True)
    other = answers.CallFailed(at, "trial_end", "...", skipped=True)

    assert log.state.new_reports(known) == []
    assert log.state.new_reports(other) == [other]


def test_divergence_is_reported_once() -> None:
    log = Log()
    log.add(*answered(0))
    log.live()
    diverged = answers.Diverged(log.last, 0, "p0", "mine")

    assert log.state.new_reports(diverged) == [diverged]
    assert log.state.new_reports(diverged) == []


def test_resumed_algorithm_learns_results_and_imports_of_earlier_generations() -> None:
    log = Log()
    log.run_trial(0, 0.5)
    log.add(events.DataImported("imported"))
    log.run_trial(1, 0.6, state="FAILED")  # its result had come before it failed
    log.add(*answered(2), events.TrialEnded("t2", "SUCCEEDED"))  # it never reported
    log.add(*answered(3, customized=True), reported(3, 0.9))
    log.add(events.SearchSpaceChanged("wider"), events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(2, "/moved/exp"))
    initialize, *rest = log.live()

    assert isinstance(initialize, commands.Initialize)
    assert initialize.search_space == "wider"
    assert initialize.setup.directory == "/moved/exp"
    assert initialize.seed == generation_seed(5, 2)
    assert rest == [
        commands.ImportTrials(at, (("p0", 0.5),)),
        commands.ImportData(at, "imported"),
        commands.ImportTrials(at, (("p1", 0.6),)),
    ]


def test_trial_of_an_earlier_generation_is_not_sent() -> None:
    log = Log()
    log.add(*answered(0), events.AlgorithmRequested(2))
    log.live()

    log.add(reported(0, 1.0), events.TrialEnded("t0", "FAILED"))

    assert log.new() == []


SUCCESSOR = AlgorithmChoice(name="Anneal")


def test_tuner_that_takes_over_is_built_with_the_space_and_a_seed_of_its_own() -> None:
    log = Log()
    log.add(*answered(0), events.SearchSpaceChanged("wider"))

    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))
    initialize = log.live()[0]

    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup.tuner == SUCCESSOR
    assert (initialize.search_space, initialize.seed) == ("wider", generation_seed(5, 2))
    assert initialize.running == ("p0",)


def test_tuner_that_takes_over_learns_all_results_without_their_tuners() -> None:
    log = Log()
    requested, generated_, scheduled = answered(0)
    assert isinstance(generated_, events.ParametersGenerated)
    log.add(requested, replace(generated_, proposers=((0, "TPE"),)), scheduled)
    log.add(reported(0, 0.5), events.TrialEnded("t0", "SUCCEEDED"))
    log.add(events.DataImported("imported"))

    at = log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))

    assert log.live()[1:] == [
        commands.ImportTrials(at, (("p0", 0.5),)),
        commands.ImportData(at, "imported"),
    ]


@pytest.mark.parametrize("early", [True, False], ids=["reported before", "reported after"])
def test_trial_that_runs_at_the_hand_over_is_imported_at_its_end(*, early: bool) -> None:
    log = Log()
    log.add(*answered(0))
    if early:
        log.add(reported(0, 0.5))
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))
    log.live()
    if not early:
        log.add(reported(0, 0.5))
    before_the_end = log.new()

    at = log.add(events.TrialEnded("t0", "SUCCEEDED"))

    assert before_the_end == []
    assert log.new() == [
        commands.ImportTrials(at, (("p0", 0.5),)),
        commands.TellEnd(at, "t0", 0, "SUCCEEDED", customized=True),
    ]


def timed(number: int, started_at_ms: int, ended_at_ms: int) -> tuple[events.Event, ...]:
    """Return the events of a trial between two times, with a first attempt that was lost."""
    return (
        *answered(number),
        events.TrialStarted(f"t{number}", 1),
        events.TrialStarted(f"t{number}", started_at_ms),
        reported(number, 0.5),
        events.TrialEnded(f"t{number}", "SUCCEEDED", ended_at_ms),
    )


@pytest.mark.parametrize(
    ("started_at_ms", "ended_at_ms", "duration_s"),
    [
        (2_000, 5_500, 3.5),
        (1, 1_001, 1.0),
        (0, 5_500, None),
        (2_000, 0, None),
        (2_000, 2_000, None),
    ],
)
def test_run_time_is_that_of_the_last_attempt_by_the_log(
    started_at_ms: int, ended_at_ms: int, duration_s: float | None
) -> None:
    log = Log()
    log.add(*timed(0, started_at_ms, ended_at_ms))

    end = log.live()[-1]

    assert isinstance(end, commands.TellEnd)
    assert end.duration_s == duration_s


def test_next_generation_imports_run_times_with_the_results() -> None:
    log = Log()
    log.add(*timed(0, 2_000, 5_500))
    log.run_trial(1, 0.6)
    log.add(events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(2))
    _, imported = log.live()

    assert imported == commands.ImportTrials(
        at, (("p0", 0.5), ("p1", 0.6)), durations_s=(3.5, None)
    )


def test_successor_imports_the_run_time_of_a_trial_that_ran_at_the_hand_over() -> None:
    log = Log()
    *begun, ended = timed(0, 2_000, 5_500)
    log.add(*begun, events.AlgorithmRequested(2, tuner=SUCCESSOR))
    log.live()

    at = log.add(ended)

    assert log.new()[0] == commands.ImportTrials(at, (("p0", 0.5),), durations_s=(3.5,))


def test_trial_without_a_result_and_one_of_the_user_are_not_imported() -> None:
    log = Log()
    log.add(*answered(0), *answered(1, customized=True), reported(1, 0.9))
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))
    log.live()

    log.add(events.TrialEnded("t0", "FAILED"), events.TrialEnded("t1", "SUCCEEDED"))

    assert {type(command) for command in log.new()} == {commands.TellEnd}


def test_hand_over_is_the_same_after_a_restart() -> None:
    log = Log()
    log.add(*answered(0), *answered(1))
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR), reported(0, 0.5))
    at = log.add(events.TrialEnded("t0", "SUCCEEDED"))

    replayed = log.live()[1:]
    log.add(reported(1, 0.6))
    later = log.add(events.TrialEnded("t1", "SUCCEEDED"))

    assert replayed[0] == commands.ImportTrials(at, (("p0", 0.5),))
    assert log.new()[0] == commands.ImportTrials(later, (("p1", 0.6),))


@pytest.mark.parametrize("restarted", [True, False])
def test_reports_after_a_hand_over_have_labels_apart_from_those_before(*, restarted: bool) -> None:
    log = Log()
    requested, generated_, scheduled = answered(0)
    assert isinstance(generated_, events.ParametersGenerated)
    log.add(requested, replace(generated_, labels=frozenset({"TPE"})), scheduled)
    if not restarted:
        log.live()
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))
    log.live()

    at = log.add(events.TrialsRequested("r1", (1,)))
    (answer,) = log.state.new_reports(generated(1, "p1", at))
    (late,) = log.state.new_reports(answers.Generated(at, "", (Suggestion(2, "p2", None),)))

    for report in (answer, late):
        assert isinstance(report, answers.Generated)
        assert report.labels.distinct("TPE") == "TPE (tuner 2)"
        assert report.labels.distinct("Anneal") == "Anneal"


def test_resume_after_a_hand_over_keeps_the_tuner_and_all_results() -> None:
    log = Log()
    log.run_trial(0, 0.5)
    log.add(*answered(1), events.AlgorithmRequested(2, tuner=SUCCESSOR), reported(1, 0.6))
    log.add(events.TrialEnded("t1", "SUCCEEDED"), events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(3))
    initialize, *rest = log.live()

    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup.tuner == SUCCESSOR
    assert initialize.running == ()
    assert rest == [commands.ImportTrials(at, (("p0", 0.5), ("p1", 0.6)))]


def test_assessor_stays_with_what_it_knew() -> None:
    log = Log(assessor=AlgorithmChoice(name="Medianstop"))
    log.add(*answered(0), reported(0, 3, final=False))
    log.add(reported(0, 1), events.TrialEnded("t0", "SUCCEEDED"))
    log.add(*answered(1), reported(1, 4, final=False))
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))
    again = log.add(events.AlgorithmRequested(3, tuner=SUCCESSOR))

    replayed = log.live()
    log.add(reported(1, 5, final=False))
    (metric,) = log.new()

    reports = (
        commands.PastReport("t0", 1, 0, 3),
        commands.PastReport("t0", end_state="SUCCEEDED"),
        commands.PastReport("t1", 1, 0, 4),
    )
    assert commands.ImportReports(again, reports) in replayed
    assert isinstance(metric, commands.TellMetric)
    assert (metric.trial_id, metric.value, metric.customized) == ("t1", 5, True)


def test_reports_are_not_sent_where_no_assessor_reads_them() -> None:
    log = Log()
    log.add(*answered(0), reported(0, 3, final=False))

    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR))

    assert [type(command) for command in log.live()] == [commands.Initialize]


def test_ended_experiment_wants_no_host() -> None:
    log = Log()
    log.add(events.ExperimentEnded())

    assert log.live() == []
    assert not log.state.wants_host


def test_customized_trial_is_marked_so() -> None:
    log = Log()
    log.live()
    log.add(
        events.CustomTrialAdded(9, "p9"),
        events.TrialScheduled("t9", 9, "p9", customized=True),
        reported(9, 1.0),
        events.TrialEnded("t9", "SUCCEEDED"),
    )

    added, metric, end = log.new()

    assert added == commands.AddCustomized(added.position, 9, "p9")
    assert isinstance(metric, commands.TellMetric)
    assert metric.customized
    assert isinstance(end, commands.TellEnd)
    assert end.customized


def test_generations_differ_in_their_seeds_and_stay_in_range() -> None:
    seeds = {generation_seed(2**63 - 1, generation) for generation in range(1, 100)}

    assert len(seeds) == 99
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert generation_seed(7, 1) == 7


def resumed_after_a_stop(**changes: Any) -> tuple[Position, list[commands.Command]]:
    """Return the resumption's position, and the commands of the generation after it."""
    log = Log(**changes)
    log.add(*answered(0), reported(0, 3, final=False))
    log.add(reported(0, 1), events.TrialEnded("t0", "SUCCEEDED"))
    log.add(*answered(1), reported(1, 4, final=False), events.TrialEnded("t1", "EARLY_STOPPED"))
    log.add(*answered(2), reported(2, 4, final=False))  # the experiment ends first
    at = log.add(events.ExperimentEnded(), events.AlgorithmRequested(2))
    return at, log.live()[1:]


def test_resumed_algorithm_learns_what_stopped_trials_have_shown() -> None:
    at, rest = resumed_after_a_stop(assessor=AlgorithmChoice(name="Medianstop"))

    assert rest == [
        commands.ImportTrials(at, (("p0", 1),)),
        commands.ImportCurves(
            at,
            (commands.PastCurve("p0", (1,), (3,)), commands.PastCurve("p1", None, (4,))),
        ),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {
            "tuner": AlgorithmChoice(server_address="h:1"),
            "assessor": AlgorithmChoice(name="Medianstop"),
        },
    ],
    ids=["no assessor", "a tuner elsewhere"],
)
def test_intermediate_results_are_not_kept_where_no_assessor_reads_them(
    changes: dict[str, Any],
) -> None:
    at, rest = resumed_after_a_stop(**changes)

    assert rest == [commands.ImportTrials(at, (("p0", 1),))]


def test_resumed_algorithm_learns_which_of_several_tuners_proposed_a_result() -> None:
    log = Log()
    for number, proposer in enumerate(("TPE", "")):
        requested, generated_, scheduled = answered(number)
        assert isinstance(generated_, events.ParametersGenerated)
        labels = ((number, proposer),) if proposer else ()
        log.add(requested, replace(generated_, proposers=labels), scheduled)
        log.add(reported(number, 0.5), events.TrialEnded(f"t{number}", "SUCCEEDED"))

    at = log.add(events.ExperimentEnded(), events.AlgorithmRequested(2))

    expected = commands.ImportTrials(at, (("p0", 0.5), ("p1", 0.5)), ("TPE", ""))
    assert log.live()[1:] == [expected]


def test_experiment_without_a_requested_algorithm_wants_no_host() -> None:
    state = AlgorithmState()
    state.feed(Position(1, 0), events.ExperimentCreated(setup()))
    state.feed(Position(2, 0), events.SearchSpaceChanged("wider"))
    state.go_live()

    assert (state.generation, state.wants_host, state.idle) == (0, False, False)
    assert state.take_commands() == []
    assert state.new_reports(answers.Done(Position(2, 0))) == []


def test_configurations_of_running_trials_are_released_at_the_end_of_the_log() -> None:
    class Payload(str):
        """Parameters to which a weak reference is possible."""

        __slots__ = ("__weakref__",)

    def replay(parameters: Payload) -> Log:
        log = Log()
        log.add(*answered(0), events.TrialScheduled("t1", 1, parameters, customized=True))
        log.live()
        return log

    payload = Payload("p1")
    released = weakref.ref(payload)
    log = replay(payload)
    del payload

    assert released() is None
    assert not log.state.idle


def test_changes_by_the_user_are_sent_to_a_running_algorithm() -> None:
    log = Log()
    log.live()

    changed = log.add(events.SearchSpaceChanged("wider"))
    imported = log.add(events.DataImported("data"))

    assert log.new() == [
        commands.UpdateSearchSpace(changed, "wider"),
        commands.ImportData(imported, "data"),
    ]


def test_divergence_in_the_log_is_not_reported_again() -> None:
    log = Log()
    log.add(*answered(0), events.AlgorithmDiverged(0))
    log.live()

    assert log.state.new_reports(answers.Diverged(log.last, 0, "p0", "mine")) == []


@pytest.mark.parametrize(("drawn", "corrected"), [("p1", False), ("mine", True)])
def test_late_parameters_in_the_log_win(drawn: str, *, corrected: bool) -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0, 1)))
    log.add(
        events.ParametersGenerated("r0", ((0, "p0"),), deferred=1),
        events.ParametersGenerated("", ((1, "p1"),)),
    )
    log.live()

    log.state.new_reports(answers.Generated(at, "", (Suggestion(1, drawn, None),)))

    assert log.new() == ([commands.Recorded(at, ((1, "p1"),))] if corrected else [])


def test_exhausted_algorithm_owes_no_deferred_parameters() -> None:
    log = Log()
    log.live()
    steps: list[events.Event] = [
        events.AlgorithmStarted(1),
        events.ParametersGenerated("r0", (), deferred=3),
        events.ParametersGenerated("", ((1, "p1"),)),
        events.ParametersGenerated("", (), exhausted=True),
        events.ParametersGenerated("r1", (), deferred=1),
    ]

    idle = []
    for step in steps:
        log.add(step)
        idle.append(log.state.idle)

    assert idle == [True, False, False, True, False]


def test_late_parameters_do_not_report_the_exhaustion_that_follows() -> None:
    log = Log()
    at = log.add(events.TrialsRequested("r0", (0, 1)))
    log.add(events.ParametersGenerated("", ((1, "p1"),), based_on=at))
    log.live()
    exhausted = answers.Generated(at, "", (Suggestion(1, "p1", None),), exhausted=True)

    assert log.state.new_reports(exhausted) == [answers.Generated(at, "", (), exhausted=True)]


def test_next_generation_starts_without_answers_of_the_one_before() -> None:
    log = Log()
    log.add(
        events.AlgorithmStarted(1),
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), deferred=2),
        events.ParametersGenerated("", ((1, "p1"),)),
        events.TrialsRequested("r5", (5,)),
        events.ExperimentEnded(),
        events.AlgorithmRequested(2),
    )
    at = log.add(events.TrialsRequested("r0", (0, 1)))
    log.live()
    late = answers.Generated(at, "", (Suggestion(1, "mine", None),))

    assert log.state.new_reports(READY) == [answers.Started(2, READY)]
    assert log.state.new_reports(late) == [late]
    assert log.state.new_reports(generated(0, "mine", at)) == [generated(0, "mine", at)]
    log.add(events.ParametersGenerated("r0", ((0, "mine"),)), events.AlgorithmStarted(2))
    assert log.state.idle


def test_result_of_a_trial_that_was_live_at_the_end_is_learned() -> None:
    log = Log()
    log.add(*answered(0), reported(0, 0.5), events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(2))

    assert log.live()[1:] == [commands.ImportTrials(at, (("p0", 0.5),))]


def test_curves_are_not_sent_unless_a_trial_was_stopped() -> None:
    log = Log(assessor=AlgorithmChoice(name="Medianstop"))
    log.add(*answered(0), reported(0, 3, final=False))
    log.add(reported(0, 1), events.TrialEnded("t0", "SUCCEEDED"), events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(2))

    assert log.live()[1:] == [commands.ImportTrials(at, (("p0", 1),))]


def test_results_of_a_replay_are_freed_at_its_end() -> None:
    log = Log(assessor=AlgorithmChoice(name="Medianstop"))
    log.run_trial(0, 0.5)
    log.add(*answered(1), reported(1, 4, final=False), events.TrialEnded("t1", "EARLY_STOPPED"))
    log.live()

    log.add(events.AlgorithmRequested(2))

    assert [type(command) for command in log.new()] == [commands.Initialize]


def test_parameters_of_an_earlier_tuner_have_no_proposer_after_the_hand_over() -> None:
    log = Log()
    requested, generated_, scheduled = answered(0)
    assert isinstance(generated_, events.ParametersGenerated)
    log.add(requested, replace(generated_, proposers=((0, "TPE"),)))
    log.add(events.AlgorithmRequested(2, tuner=SUCCESSOR), scheduled, reported(0, 0.5))
    log.add(events.TrialEnded("t0", "SUCCEEDED"), events.ExperimentEnded())

    at = log.add(events.AlgorithmRequested(3))

    assert log.live()[1:] == [commands.ImportTrials(at, (("p0", 0.5),))]


def test_external_successor_gets_intermediate_results_of_its_own_trials_only() -> None:
    log = Log(assessor=AlgorithmChoice(name="Medianstop"))
    log.add(*answered(0))
    log.add(events.AlgorithmRequested(2, tuner=AlgorithmChoice(server_address="h:1")))
    log.add(*answered(1))
    log.live()

    log.add(reported(0, 0.1, final=False))
    of_before = log.new()
    log.add(reported(1, 0.2, final=False))
    (metric,) = log.new()

    assert of_before == []
    assert isinstance(metric, commands.TellMetric)
    assert (metric.trial_id, metric.value) == ("t1", 0.2)
