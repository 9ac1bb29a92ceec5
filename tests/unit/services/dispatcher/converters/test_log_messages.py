"""Conversion of log messages to events, and of reports to messages."""

from typing import Any, cast

import pytest
from google.protobuf.message import Message

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers, events
from svc_dispatcher.domain.tuner_labels import TunerLabels
from svc_dispatcher.domain.values import AlgorithmChoice, Position, Suggestion


def batch(**kinds: Message) -> event_pb2.EventBatch:
    return event_pb2.EventBatch(
        events=[event_pb2.Event(**cast("Any", {kind: message})) for kind, message in kinds.items()]
    )


def one(**kinds: Message) -> events.Event:
    ((_, event),) = log_messages.events_of(1, batch(**kinds))
    return event


def test_creation_becomes_the_setup_of_a_host() -> None:
    config = config_pb2.ExperimentConfig(
        search_space=to_value({"x": 1}),
        experiment_working_directory="/root",
        seed=3,
        debug=True,
        tuner_gpu_indices=[1],
        tuner=config_pb2.AlgorithmConfig(name="TPE", class_args=to_value({"a": 1})),
        advisor=config_pb2.AlgorithmConfig(
            custom=config_pb2.CustomClass(class_name="m.C", code_directory="/code")
        ),
    )

    event = one(
        experiment_created=event_pb2.ExperimentCreated(
            experiment_id="exp", config=config, interpreter="/usr/bin/python3"
        )
    )

    assert isinstance(event, events.ExperimentCreated)
    assert event.setup.directory == "/root/exp"
    assert event.setup.log_level == "debug"
    assert event.setup.gpu_indices == (1,)
    assert event.setup.tuner == AlgorithmChoice(name="TPE", class_args=to_value({"a": 1}))
    assert event.setup.assessor is None
    assert event.setup.advisor == AlgorithmChoice(class_name="m.C", code_directory="/code")


def test_events_keep_their_places_among_those_that_do_not_matter() -> None:
    message = batch(
        trial_started=event_pb2.TrialStarted(trial_id="t"),
        trial_ended=event_pb2.TrialEnded(trial_id="t", state=trial_pb2.TRIAL_STATE_EARLY_STOPPED),
    )

    found = list(log_messages.events_of(9, message))

    assert found == [(Position(9, 1), events.TrialEnded("t", "EARLY_STOPPED"))]


def test_times_of_a_trial_are_milliseconds() -> None:
    started = event_pb2.TrialStarted(trial_id="t")
    started.started_at.FromMilliseconds(2_000)
    ended = event_pb2.TrialEnded(trial_id="t", state=trial_pb2.TRIAL_STATE_SUCCEEDED)
    ended.ended_at.FromMilliseconds(5_500)

    assert one(trial_started=started) == events.TrialStarted("t", 2_000)
    assert one(trial_ended=ended) == events.TrialEnded("t", "SUCCEEDED", 5_500)


@pytest.mark.parametrize(
    ("infrastructure", "state"),
    [(True, "SYS_CANCELED"), (False, "FAILED")],  # False: a log of an earlier version, too
)
def test_algorithm_learns_no_failure_from_an_end_by_the_infrastructure(
    infrastructure: bool, state: str
) -> None:
    ended = event_pb2.TrialEnded(
        trial_id="t", state=trial_pb2.TRIAL_STATE_FAILED, infrastructure=infrastructure
    )

    assert one(trial_ended=ended) == events.TrialEnded("t", state)


def test_metric_keeps_its_value_as_it_is() -> None:
    value = to_value({"default": float("inf")})
    metric = metric_pb2.Metric(type=metric_pb2.METRIC_TYPE_FINAL, sequence=2, value=value)

    event = one(
        metric_reported=event_pb2.MetricReported(
            trial_id="t", attempt=1, parameter_id=4, metric=metric
        )
    )

    assert event == events.MetricReported("t", 1, 4, final=True, sequence=2, value=value)


@pytest.mark.parametrize(("state", "ended"), [("STOPPED", 1), ("ERROR", 1), ("DONE", 0)])
def test_final_states_end_the_algorithm(state: str, ended: int) -> None:
    message = batch(experiment_state_changed=event_pb2.ExperimentStateChanged(to_state=state))

    assert len(list(log_messages.events_of(1, message))) == ended


def test_last_event_of_an_append_decides_whether_an_algorithm_is_wanted() -> None:
    ended = event_pb2.ExperimentEnded()
    again = event_pb2.AlgorithmRequested(generation=2)

    stopped = batch(algorithm_requested=again, experiment_ended=ended).SerializeToString()
    resumed = batch(experiment_ended=ended, algorithm_requested=again).SerializeToString()

    assert log_messages.ends_experiment(stopped)
    assert not log_messages.ends_experiment(resumed)
    assert log_messages.wants_algorithm(resumed)


def test_values_in_the_byte_store_are_found_wherever_they_may_stand() -> None:
    value = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256="0" * 64))
    config = config_pb2.ExperimentConfig(
        search_space=value, tuner=config_pb2.AlgorithmConfig(class_args=value)
    )
    message = batch(
        experiment_created=event_pb2.ExperimentCreated(config=config),
        search_space_changed=event_pb2.SearchSpaceChanged(search_space=value),
        data_imported=event_pb2.DataImported(data=value),
        custom_trial_added=event_pb2.CustomTrialAdded(parameters=value),
        trial_scheduled=event_pb2.TrialScheduled(parameters=value),
        metric_reported=event_pb2.MetricReported(metric=metric_pb2.Metric(value=value)),
        parameters_generated=event_pb2.ParametersGenerated(
            parameters=[event_pb2.GeneratedParameters(parameters=value)]
        ),
        trial_ended=event_pb2.TrialEnded(),
        algorithm_requested=event_pb2.AlgorithmRequested(
            tuner=config_pb2.AlgorithmConfig(class_args=value)
        ),
    )

    assert len(log_messages.blobs_of(message)) == 9


@pytest.mark.parametrize("name", ["", "Anneal"])
def test_request_names_the_tuner_that_takes_over(name: str) -> None:
    message = event_pb2.AlgorithmRequested(generation=2, directory="/exp")
    if name:
        message.tuner.name = name

    event = one(algorithm_requested=message)

    tuner = AlgorithmChoice(name=name) if name else None
    assert event == events.AlgorithmRequested(2, "/exp", tuner=tuner)


def test_tuner_that_proposed_parameters_is_read_from_their_provenance() -> None:
    message = event_pb2.ParametersGenerated(request_id="r")
    for number, origin in enumerate(({"algorithm": "Portfolio", "tuner": "TPE"}, {"seed": 1})):
        item = message.parameters.add(parameter_id=number)
        item.provenance.CopyFrom(to_value(origin))

    ((_, generated),) = log_messages.events_of(1, batch(parameters_generated=message))

    assert isinstance(generated, events.ParametersGenerated)
    assert generated.proposers == ((0, "TPE"),)


def test_labels_of_suggestions_are_those_of_the_tuners_or_their_names() -> None:
    message = event_pb2.ParametersGenerated(request_id="r")
    for origin in (
        {"algorithm": "Portfolio", "tuner": "TPE (tuner 2)", "listed_as": "TPE"},
        {"algorithm": "Random"},
        {},
    ):
        item = message.parameters.add(parameter_id=len(message.parameters))
        item.provenance.CopyFrom(to_value(origin))

    ((_, generated),) = log_messages.events_of(1, batch(parameters_generated=message))

    assert isinstance(generated, events.ParametersGenerated)
    assert generated.labels == {"TPE (tuner 2)", "Random"}
    assert dict(generated.proposers) == {0: "TPE"}


@pytest.mark.parametrize(
    ("origin", "label"),
    [
        ({"algorithm": "TPE", "results": 3}, {"tuner": "TPE (tuner 2)"}),
        ({"algorithm": "Anneal"}, {}),
        (
            {"algorithm": "Portfolio", "tuner": "TPE"},
            {"tuner": "TPE (tuner 2)", "listed_as": "TPE"},
        ),
        ({"algorithm": "Portfolio", "tuner": "Anneal"}, {}),
        ({}, {}),
    ],
)
def test_suggestions_have_a_label_that_no_earlier_tuner_has(
    origin: dict[str, object], label: dict[str, str]
) -> None:
    labels = TunerLabels(number=2, earlier=frozenset({"TPE", "Random"}))
    suggestion = Suggestion(7, to_value({"x": 1}), to_value(origin))
    report = answers.Generated(Position(5, 2), "r", (suggestion,), labels=labels)

    message = log_messages.report_to_proto(report).parameters_generated

    assert from_value(message.parameters[0].provenance) == origin | label
    assert suggestion.provenance == to_value(origin)


def test_answer_becomes_a_message_with_what_it_was_based_on() -> None:
    report = answers.Generated(
        Position(5, 2),
        "r",
        (Suggestion(7, to_value({"x": 1}), to_value({"algorithm": "TPE"})),),
        exhausted=True,
        deferred=1,
        released_checkpoints=("/c/0/0",),
    )

    message = log_messages.report_to_proto(report).parameters_generated

    assert (message.based_on.sequence, message.based_on.index) == (5, 2)
    assert (message.request_id, message.exhausted, message.deferred) == ("r", True, 1)
    assert message.released_checkpoints == ["/c/0/0"]
    assert message.parameters[0].parameter_id == 7
    assert message.parameters[0].parameters == to_value({"x": 1})


REPORTS: dict[str, answers.Report] = {
    "stop_advice": answers.StopAdvised(Position(1, 0), "t"),
    "algorithm_started": answers.Started(2, answers.Ready(True, False, (("python", "3"),))),
    "algorithm_failed": answers.CallFailed(Position(1, 0), "trial_end", "trace", skipped=True),
    "algorithm_diverged": answers.Diverged(Position(1, 0), 3, to_value(1), to_value(2)),
    "algorithm_gave_up": answers.GaveUp(1, "why"),
    "parameters_generated": answers.Generated(Position(1, 0), "", (Suggestion(1, None, None),)),
}


@pytest.mark.parametrize(("kind", "report"), REPORTS.items(), ids=REPORTS.keys())
def test_every_report_has_its_message(kind: str, report: answers.Report) -> None:
    assert log_messages.report_to_proto(report).WhichOneof("kind") == kind


def test_reports_have_different_ids_and_repetitions_the_same() -> None:
    ids = [log_messages.message_id("exp", 1, report) for report in REPORTS.values()]

    assert len(set(ids)) == len(ids)
    assert ids == [log_messages.message_id("exp", 1, report) for report in REPORTS.values()]
    assert log_messages.message_id("exp", 2, REPORTS["algorithm_gave_up"]) not in ids


def test_only_messages_are_payloads() -> None:
    assert log_messages.as_value(None) == value_pb2.Value()
    with pytest.raises(TypeError, match="must be a message Value"):
        log_messages.as_value("text")
