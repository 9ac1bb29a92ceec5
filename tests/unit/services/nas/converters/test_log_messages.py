"""Messages of the log and of the INBOX."""

from __future__ import annotations

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_wire.values import to_value
from svc_nas.converters import log_messages
from svc_nas.domain import events, reports
from svc_nas.domain.reports import Candidate
from tests.support.scripted_manager import ended, experiment_ended, metric, requested, scheduled


def batch(*items: event_pb2.Event) -> event_pb2.EventBatch:
    return event_pb2.EventBatch(events=items)


def changed(state: experiment_pb2.ExperimentState.ValueType) -> event_pb2.Event:
    return event_pb2.Event(
        experiment_state_changed=event_pb2.ExperimentStateChanged(new_state=state)
    )


def test_only_explorations_want_the_service() -> None:
    ours, other = (batch(requested(1, name)).SerializeToString() for name in ("nas", "compressor"))

    assert log_messages.wants_nas(ours)
    assert not log_messages.wants_nas(other)


def test_exploration_ends_unless_the_same_batch_starts_it_again() -> None:
    stopped = changed(experiment_pb2.EXPERIMENT_STATE_STOPPED)

    assert log_messages.ends_exploration(batch(stopped).SerializeToString())
    assert not log_messages.ends_exploration(
        batch(experiment_ended(), requested(2, "nas")).SerializeToString()
    )


def test_creation_has_what_the_process_of_the_strategy_needs() -> None:
    config = config_pb2.ExperimentConfig(
        trial_code_directory="/code",
        trial_concurrency=3,
        seed=5,
        code_archive=value_pb2.BlobRef(sha256="cd"),
        nas=config_pb2.NasConfig(
            document=value_pb2.BlobRef(sha256="ab"), strategy="Random", model_format="simplified"
        ),
    )
    created = event_pb2.ExperimentCreated(config=config, interpreter="/python")

    (event,) = log_messages.events_of(batch(event_pb2.Event(experiment_created=created)))

    assert event == events.ExplorationCreated(
        "ab", "Random", "", "simplified", "/python", "/code", 3, seed=5, code_archive="cd"
    )


def test_events_of_trials_are_converted_in_order() -> None:
    found = list(
        log_messages.events_of(
            batch(
                scheduled("t0001", 1, to_value({})),
                metric(1, {"default": 0.5}),
                event_pb2.Event(trial_lost=event_pb2.TrialLost(trial_id="t0001")),
                ended(1),
                event_pb2.Event(budget_changed=event_pb2.BudgetChanged(trial_concurrency=0)),
                event_pb2.Event(budget_changed=event_pb2.BudgetChanged(max_trial_number=3)),
                changed(experiment_pb2.EXPERIMENT_STATE_DONE),
            )
        )
    )

    assert found == [
        events.TrialScheduled("t0001", 1),
        events.MetricReported("t0001", {"default": 0.5}, is_final=True),
        events.TrialLost("t0001"),
        events.TrialEnded("t0001", "SUCCEEDED"),
        events.BudgetChanged(0),
        events.StateChanged("DONE"),
    ]


def test_candidates_come_back_from_the_log_as_they_were_reported() -> None:
    candidates = ((4, Candidate("a-0", {"sample": {"width": 8}, "rate": 0.5})),)
    report = reports.CandidatesGenerated("1-0", candidates, deferred=1)

    answer = log_messages.report_to_proto(report).parameters_generated
    (event,) = log_messages.events_of(batch(event_pb2.Event(parameters_generated=answer)))

    assert event == events.CandidatesRecorded(
        "1-0",
        (events.RecordedCandidate(4, "a-0", {"sample": {"width": 8}, "rate": 0.5}),),
        exhausted=False,
    )
    assert answer.deferred == 1


def test_other_reports_become_messages() -> None:
    started, stopped, gave_up = (
        log_messages.report_to_proto(one)
        for one in (reports.Started(2), reports.TrialStopped("t"), reports.GaveUp(2, "no module"))
    )

    assert started.algorithm_started.generation == 2
    assert stopped.stop_advice.trial_id == "t"
    assert gave_up.algorithm_gave_up.reason == "no module"


def test_values_in_the_blob_store_are_listed() -> None:
    blob = value_pb2.Value(blob_value=value_pb2.BlobRef(sha256="ab"))
    item = event_pb2.GeneratedParameters(parameter_id=1, parameters=blob)
    answer = event_pb2.ParametersGenerated(parameters=[item])

    inline = metric(1, 0.5)

    found = log_messages.blobs_of(batch(event_pb2.Event(parameters_generated=answer), inline))

    assert found == [blob]


def test_message_ids_tell_reports_apart() -> None:
    one, two = (((0, Candidate(key, {})),) for key in ("a", "b"))
    made = {
        log_messages.message_id("e", 1, report)
        for report in (
            reports.Started(1),
            reports.GaveUp(1, "r"),
            reports.TrialStopped("t"),
            reports.CandidatesGenerated("1-0", one),
            reports.CandidatesGenerated("", one),
            reports.CandidatesGenerated("", two),
        )
    }

    assert len(made) == 6
