"""Which lives a log tells, and what a comparison makes of a fresh host's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.replay import (
    ChangedVersion,
    Comparison,
    Difference,
    RecordedLife,
    RecordedLives,
    recorded_lives,
    verdict_of,
)
from svc_dispatcher.domain.values import (
    AlgorithmChoice,
    ExperimentSetup,
    Position,
    Suggestion,
)

SETUP = ExperimentSetup(
    experiment_id="exp",
    directory="/root/exp",
    interpreter="",
    tuner=AlgorithmChoice(name="TPE"),
    assessor=None,
    advisor=None,
    search_space="space",
    seed=5,
    log_level="info",
    trial_code_directory="/code",
)


def log(*more: events.Event, setup: ExperimentSetup = SETUP) -> list[tuple[Position, events.Event]]:
    facts = (events.ExperimentCreated(setup), events.AlgorithmRequested(1), *more)
    return [(Position(number, 0), event) for number, event in enumerate(facts, start=1)]


def trial(number: int) -> tuple[events.Event, ...]:
    return (
        events.TrialsRequested(f"r{number}", (number,)),
        events.ParametersGenerated(f"r{number}", ((number, f"p{number}"),)),
        events.TrialScheduled(f"t{number}", number, f"p{number}", customized=False),
        events.MetricReported(f"t{number}", 1, number, True, 0, 0.5),
        events.TrialEnded(f"t{number}", "SUCCEEDED"),
    )


def only_life(*more: events.Event, setup: ExperimentSetup = SETUP) -> RecordedLife:
    (life,) = recorded_lives(log(*more, setup=setup))
    return life


def drawn(number: int, parameters: str, *, request: str = "") -> answers.Generated:
    at = Position(3, 0)
    return answers.Generated(at, request or f"r{number}", (Suggestion(number, parameters, None),))


def repeated(life: RecordedLife) -> Comparison:
    """Let a host say just what the log holds."""
    comparison = Comparison(life)
    for command in life.commands:
        if isinstance(command, commands.Generate):
            for number in command.parameter_ids:
                comparison.heard(drawn(number, f"p{number}"))
        comparison.handled(command)
    return comparison


def test_a_request_is_asked_anew_and_followed_by_what_the_log_holds() -> None:
    told = only_life(*trial(0)).commands

    kinds = [type(command) for command in told]
    assert kinds == [
        commands.Initialize,
        commands.Generate,
        commands.Recorded,
        commands.TellMetric,
        commands.TellEnd,
    ]
    assert told[1] == commands.Generate(Position(3, 0), "r0", (0,), replayed=False)


def test_each_resume_begins_a_life_of_its_own() -> None:
    first, second = recorded_lives(
        log(*trial(0), events.ExperimentEnded(), events.AlgorithmRequested(2), *trial(1))
    )

    assert (first.generation, second.generation) == (1, 2)
    assert (first.recorded, second.recorded) == ({0: "p0"}, {1: "p1"})
    assert isinstance(second.commands[1], commands.ImportTrials)


def test_a_log_without_an_algorithm_has_no_life() -> None:
    assert recorded_lives([(Position(1, 0), events.ExperimentCreated(SETUP))]) == []
    assert recorded_lives([]) == []


def test_all_lives_are_where_the_experiment_lies_now() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="m.T", code_directory="/code/tuner"))

    life = only_life(*trial(0), events.ExperimentMoved("/here/exp", "/new"), setup=own)

    initialize = life.commands[0]
    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup.directory == "/here/exp"
    assert initialize.setup.tuner == AlgorithmChoice(class_name="m.T", code_directory="/new/tuner")


def test_a_class_outside_of_the_code_stays_where_it_is() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="m.T", code_directory="/codes"))

    life = only_life(events.ExperimentMoved("", "/new"), setup=own)

    assert life.setup.tuner == own.tuner
    assert life.setup.directory == "/root/exp"


def test_reader_knows_the_trial_of_each_set_of_parameters() -> None:
    reader = RecordedLives()
    for position, event in log(*trial(0), *trial(1)):
        reader.feed(position, event)

    assert reader.trials == {0: "t0", 1: "t1"}


def test_what_is_drawn_again_is_repeatable() -> None:
    verdict = verdict_of([repeated(only_life(*trial(0), *trial(1)))])

    assert verdict.repeatable
    assert (verdict.suggestions, verdict.equal, verdict.generations) == (2, 2, 1)
    assert verdict.reason == ""


def test_what_the_host_says_differs_is_a_difference() -> None:
    life = only_life(*trial(0), *trial(1))
    comparison = Comparison(life)
    comparison.heard(drawn(0, "p0"))
    comparison.heard(answers.Diverged(Position(3, 0), 0, "p0", "other"))

    for command in life.commands:
        comparison.handled(command)

    assert comparison.take_differences() == [Difference(1, 0, "p0", "other")]
    assert comparison.take_differences() == []
    verdict = verdict_of([comparison])
    assert not verdict.repeatable
    assert (verdict.suggestions, verdict.equal) == (2, 1)
    assert verdict.reason.startswith("1 of 2 suggestions were drawn differently: a built-in")


def test_more_than_the_log_holds_is_a_difference() -> None:
    exhausted = (
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), exhausted=True),
    )
    comparison = Comparison(only_life(*exhausted))

    comparison.heard(
        answers.Generated(
            Position(3, 0), "r0", (Suggestion(0, "p0", None), Suggestion(1, "p1", None))
        )
    )

    assert comparison.take_differences() == [Difference(1, 1, None, "p1")]


def test_an_answer_that_only_late_parameters_follow_was_never_recorded() -> None:
    life = only_life(
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), deferred=1),
        events.TrialsRequested("r1", (2,)),
        events.ParametersGenerated("", ((1, "p1"),)),
        events.ExperimentEnded(),
    )
    comparison = Comparison(life)

    comparison.heard(drawn(2, "p2", request="r1"))

    assert comparison.different == 0


def test_the_answer_to_a_request_that_was_never_answered_is_no_difference() -> None:
    life = only_life(*trial(0), events.TrialsRequested("r1", (1,)))
    comparison = repeated(life)

    comparison.heard(drawn(1, "p1"))

    assert verdict_of([comparison]).repeatable


def test_what_came_late_is_compared_too() -> None:
    late = (
        events.TrialsRequested("r0", (0,)),
        events.ParametersGenerated("r0", (), deferred=1),
        events.ParametersGenerated("", ((0, "p0"),)),
    )
    life = only_life(*late)
    comparison = Comparison(life)
    comparison.heard(answers.Diverged(Position(5, 0), 0, "p0", None))
    for command in life.commands:
        comparison.handled(command)

    assert not verdict_of([comparison]).repeatable


def test_a_stop_that_is_not_advised_again_is_missed() -> None:
    stopped = (*trial(0)[:3], events.TrialStopRequested("t0", early=True))
    comparison = repeated(only_life(*stopped))

    verdict = verdict_of([comparison])

    assert not verdict.repeatable
    assert verdict.missing_stops == ("t0",)
    assert "1 of 1 early stops were not advised again" in verdict.reason


def test_a_stop_that_is_advised_again_is_equal_and_one_of_the_user_does_not_count() -> None:
    stopped = (
        *trial(0)[:3],
        events.TrialStopRequested("t0", early=True),
        *trial(1)[:3],
        events.TrialStopRequested("t1"),
    )
    comparison = repeated(only_life(*stopped))
    comparison.heard(answers.StopAdvised(Position(9, 0), "t0"))

    verdict = verdict_of([comparison])

    assert verdict.repeatable
    assert (verdict.stops, verdict.missing_stops) == (1, ())


def test_a_divergence_in_the_log_is_held_against_the_algorithm() -> None:
    verdict = verdict_of([repeated(only_life(*trial(0), events.AlgorithmDiverged(0)))])

    assert not verdict.repeatable
    assert "a host that was restarted drew others" in verdict.reason


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (answers.Unbuildable(Position(2, 0), "ModuleNotFoundError: no m", "tb"), "no m"),
        (
            answers.CallFailed(Position(3, 0), "generate_parameters", "a\nValueError: b", False),
            "generate_parameters raised ValueError: b",
        ),
    ],
)
def test_an_algorithm_that_cannot_go_on_says_why(output: answers.Output, reason: str) -> None:
    comparison = Comparison(only_life(*trial(0)))
    comparison.heard(output)

    verdict = verdict_of([comparison])

    assert not verdict.repeatable
    assert reason in verdict.reason


def test_a_failure_in_a_life_that_drew_nothing_proves_nothing_wrong() -> None:
    comparison = Comparison(only_life(events.TrialsRequested("r0", (0,))))
    comparison.heard(answers.CallFailed(Position(3, 0), "generate_parameters", "x", skipped=False))

    assert verdict_of([comparison]).repeatable


def different(life: RecordedLife) -> Comparison:
    comparison = Comparison(life)
    comparison.heard(answers.Diverged(Position(3, 0), 0, "p0", "other"))
    return comparison


def test_the_reason_names_a_class_of_the_users_own() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="mine.Tuner"))

    reason = verdict_of([different(only_life(*trial(0), setup=own))]).reason

    assert "mine.Tuner does not repeat itself" in reason


def test_the_reason_names_a_server() -> None:
    away = replace(SETUP, tuner=AlgorithmChoice(server_address="host:1"))

    assert "host:1" in verdict_of([different(only_life(*trial(0), setup=away))]).reason


def test_the_reason_names_versions_that_have_changed() -> None:
    started = events.AlgorithmStarted(1, (("numpy", "1.0"), ("python", "3.11")))
    comparison = different(only_life(started, *trial(0)))
    present = (("numpy", "2.0"), ("python", "3.11"))
    comparison.heard(answers.Ready(lookahead=False, assesses=False, provenance=present))

    verdict = verdict_of([comparison])

    assert verdict.changed_versions == (ChangedVersion("numpy", "1.0", "2.0"),)
    assert "numpy was 1.0 and is 2.0" in verdict.reason


def test_the_reason_names_the_life_if_there_are_several() -> None:
    first, second = recorded_lives(log(*trial(0), events.AlgorithmRequested(2), *trial(1)))

    verdict = verdict_of([repeated(first), Comparison(second)])

    assert verdict.reason.startswith("generation 2: ")
