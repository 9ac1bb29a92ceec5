"""Recorded generations of a log, and their comparison with a fresh host's outputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from svc_dispatcher.domain import answers, commands, events
from svc_dispatcher.domain.replay import (
    ChangedVersion,
    Comparison,
    GenerationReader,
    RecordedGeneration,
    SuggestionDifference,
    recorded_generations,
    replay_result,
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


def only_generation(*more: events.Event, setup: ExperimentSetup = SETUP) -> RecordedGeneration:
    (generation,) = recorded_generations(log(*more, setup=setup))
    return generation


def drawn(number: int, parameters: str, *, request: str = "") -> answers.Generated:
    at = Position(3, 0)
    return answers.Generated(at, request or f"r{number}", (Suggestion(number, parameters, None),))


def repeated(generation: RecordedGeneration) -> Comparison:
    """Return a comparison after a host has reproduced the whole generation."""
    comparison = Comparison(generation)
    for command in generation.commands:
        if isinstance(command, commands.Generate):
            for number in command.parameter_ids:
                comparison.add_output(drawn(number, f"p{number}"))
        comparison.handled(command)
    return comparison


def test_a_request_is_asked_anew_and_followed_by_what_the_log_holds() -> None:
    found = only_generation(*trial(0)).commands

    kinds = [type(command) for command in found]
    assert kinds == [
        commands.Initialize,
        commands.Generate,
        commands.Recorded,
        commands.TellMetric,
        commands.TellEnd,
    ]
    assert found[1] == commands.Generate(Position(3, 0), "r0", (0,), replayed=False)


def test_each_resume_begins_a_generation_of_its_own() -> None:
    first, second = recorded_generations(
        log(*trial(0), events.ExperimentEnded(), events.AlgorithmRequested(2), *trial(1))
    )

    assert (first.number, second.number) == (1, 2)
    assert (first.recorded, second.recorded) == ({0: "p0"}, {1: "p1"})
    assert isinstance(second.commands[1], commands.ImportTrials)


def test_a_log_without_an_algorithm_has_no_generation() -> None:
    assert recorded_generations([(Position(1, 0), events.ExperimentCreated(SETUP))]) == []
    assert recorded_generations([]) == []


def test_all_generations_are_at_the_present_place() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="m.T", code_directory="/code/tuner"))

    generation = only_generation(*trial(0), events.ExperimentMoved("/here/exp", "/new"), setup=own)

    initialize = generation.commands[0]
    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup.directory == "/here/exp"
    assert initialize.setup.tuner == AlgorithmChoice(class_name="m.T", code_directory="/new/tuner")


def test_a_class_outside_of_the_code_stays_where_it_is() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="m.T", code_directory="/codes"))

    generation = only_generation(events.ExperimentMoved("", "/new"), setup=own)

    assert generation.setup.tuner == own.tuner
    assert generation.setup.directory == "/root/exp"


def test_reader_knows_the_trial_of_each_set_of_parameters() -> None:
    reader = GenerationReader()
    for position, event in log(*trial(0), *trial(1)):
        reader.feed(position, event)

    assert reader.trials == {0: "t0", 1: "t1"}


def test_reproduced_suggestions_are_repeatable() -> None:
    result = replay_result([repeated(only_generation(*trial(0), *trial(1)))])

    assert result.repeatable
    assert (result.suggestions, result.equal, result.generations) == (2, 2, 1)
    assert result.reason == ""


def test_divergence_reported_by_the_host_is_a_difference() -> None:
    generation = only_generation(*trial(0), *trial(1))
    comparison = Comparison(generation)
    comparison.add_output(drawn(0, "p0"))
    comparison.add_output(answers.Diverged(Position(3, 0), 0, "p0", "other"))

    for command in generation.commands:
        comparison.handled(command)

    assert comparison.take_differences() == [SuggestionDifference(1, 0, "p0", "other")]
    assert comparison.take_differences() == []
    result = replay_result([comparison])
    assert not result.repeatable
    assert (result.suggestions, result.equal) == (2, 1)
    assert result.reason.startswith("1 of 2 suggestions were drawn differently: a built-in")


def test_more_than_the_log_holds_is_a_difference() -> None:
    exhausted = (
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), exhausted=True),
    )
    comparison = Comparison(only_generation(*exhausted))

    comparison.add_output(
        answers.Generated(
            Position(3, 0), "r0", (Suggestion(0, "p0", None), Suggestion(1, "p1", None))
        )
    )

    assert comparison.take_differences() == [SuggestionDifference(1, 1, None, "p1")]


def test_an_answer_that_only_late_parameters_follow_was_never_recorded() -> None:
    generation = only_generation(
        events.TrialsRequested("r0", (0, 1)),
        events.ParametersGenerated("r0", ((0, "p0"),), deferred=1),
        events.TrialsRequested("r1", (2,)),
        events.ParametersGenerated("", ((1, "p1"),)),
        events.ExperimentEnded(),
    )
    comparison = Comparison(generation)

    comparison.add_output(drawn(2, "p2", request="r1"))

    assert comparison.different == 0


def test_the_answer_to_a_request_that_was_never_answered_is_no_difference() -> None:
    generation = only_generation(*trial(0), events.TrialsRequested("r1", (1,)))
    comparison = repeated(generation)

    comparison.add_output(drawn(1, "p1"))

    assert replay_result([comparison]).repeatable


def test_late_parameters_are_compared_too() -> None:
    late = (
        events.TrialsRequested("r0", (0,)),
        events.ParametersGenerated("r0", (), deferred=1),
        events.ParametersGenerated("", ((0, "p0"),)),
    )
    generation = only_generation(*late)
    comparison = Comparison(generation)
    comparison.add_output(answers.Diverged(Position(5, 0), 0, "p0", None))
    for command in generation.commands:
        comparison.handled(command)

    assert not replay_result([comparison]).repeatable


def test_a_stop_that_is_not_advised_again_is_missed() -> None:
    stopped = (*trial(0)[:3], events.TrialStopRequested("t0", early=True))
    comparison = repeated(only_generation(*stopped))

    result = replay_result([comparison])

    assert not result.repeatable
    assert result.missing_stops == ("t0",)
    assert "1 of 1 early stops were not advised again" in result.reason


def test_a_stop_that_is_advised_again_is_equal_and_one_of_the_user_does_not_count() -> None:
    stopped = (
        *trial(0)[:3],
        events.TrialStopRequested("t0", early=True),
        *trial(1)[:3],
        events.TrialStopRequested("t1"),
    )
    comparison = repeated(only_generation(*stopped))
    comparison.add_output(answers.StopAdvised(Position(9, 0), "t0"))

    result = replay_result([comparison])

    assert result.repeatable
    assert (result.stops, result.missing_stops) == (1, ())


def test_a_divergence_in_the_log_is_held_against_the_algorithm() -> None:
    result = replay_result([repeated(only_generation(*trial(0), events.AlgorithmDiverged(0)))])

    assert not result.repeatable
    assert "a restarted host drew parameters that differ" in result.reason


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
def test_an_algorithm_that_cannot_go_on_has_a_reason(output: answers.Output, reason: str) -> None:
    comparison = Comparison(only_generation(*trial(0)))
    comparison.add_output(output)

    result = replay_result([comparison])

    assert not result.repeatable
    assert reason in result.reason


def test_a_failure_in_a_generation_that_drew_nothing_proves_nothing_wrong() -> None:
    comparison = Comparison(only_generation(events.TrialsRequested("r0", (0,))))
    comparison.add_output(
        answers.CallFailed(Position(3, 0), "generate_parameters", "x", skipped=False)
    )

    assert replay_result([comparison]).repeatable


def different(generation: RecordedGeneration) -> Comparison:
    comparison = Comparison(generation)
    comparison.add_output(answers.Diverged(Position(3, 0), 0, "p0", "other"))
    return comparison


def test_the_reason_names_a_class_of_the_users_own() -> None:
    own = replace(SETUP, tuner=AlgorithmChoice(class_name="mine.Tuner"))

    reason = replay_result([different(only_generation(*trial(0), setup=own))]).reason

    assert "mine.Tuner does not repeat itself" in reason


def test_the_reason_names_a_server() -> None:
    away = replace(SETUP, tuner=AlgorithmChoice(server_address="host:1"))

    assert "host:1" in replay_result([different(only_generation(*trial(0), setup=away))]).reason


def test_the_reason_names_versions_that_have_changed() -> None:
    started = events.AlgorithmStarted(1, (("numpy", "1.0"), ("python", "3.11")))
    comparison = different(only_generation(started, *trial(0)))
    present = (("numpy", "2.0"), ("python", "3.11"))
    comparison.add_output(answers.Ready(lookahead=False, assesses=False, provenance=present))

    result = replay_result([comparison])

    assert result.changed_versions == (ChangedVersion("numpy", "1.0", "2.0"),)
    assert "numpy was 1.0 and is 2.0" in result.reason


def test_the_reason_names_the_generation_if_there_are_several() -> None:
    first, second = recorded_generations(log(*trial(0), events.AlgorithmRequested(2), *trial(1)))

    result = replay_result([repeated(first), Comparison(second)])

    assert result.reason.startswith("generation 2: ")
