"""Messages of a job's log, and reports to the manager."""

from __future__ import annotations

from typing import Any

from nni.compression.job.steps import Step
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_compressor.converters import log_messages
from svc_compressor.domain import events, reports
from tests.support.compression_job import job_of
from tests.support.scripted_manager import ended, experiment_ended, requested, scheduled

STEP = reports.StepGenerated("r", 5, Step(2, "prune"), deferred=1)


def batch(*happened: event_pb2.Event) -> bytes:
    return event_pb2.EventBatch(events=happened).SerializeToString()


def created(**fields: Any) -> event_pb2.Event:
    config = config_pb2.ExperimentConfig(**fields)
    return event_pb2.Event(experiment_created=event_pb2.ExperimentCreated(config=config))


def changed(state: experiment_pb2.ExperimentState.ValueType) -> event_pb2.Event:
    change = event_pb2.ExperimentStateChanged(new_state=state)
    return event_pb2.Event(experiment_state_changed=change)


def test_only_requests_for_this_service_begin_a_session() -> None:
    assert log_messages.wants_compressor(batch(requested(1, "compressor")))
    assert not log_messages.wants_compressor(batch(requested(1), experiment_ended()))


def test_log_ends_with_its_experiment_unless_it_goes_on() -> None:
    stopped = changed(experiment_pb2.EXPERIMENT_STATE_STOPPED)

    assert log_messages.ends_job(batch(experiment_ended()))
    assert log_messages.ends_job(batch(stopped))
    assert not log_messages.ends_job(batch(stopped, requested(2, "compressor")))
    assert not log_messages.ends_job(batch(changed(experiment_pb2.EXPERIMENT_STATE_RUNNING)))


def test_events_of_a_job_are_decoded() -> None:
    answer = event_pb2.ParametersGenerated(request_id="r", exhausted=True)
    answer.parameters.add(parameter_id=3)
    asked = event_pb2.TrialsRequested(request_id="r", parameter_ids=[3])
    payload = batch(
        created(compression=config_pb2.CompressionConfig(job=to_value({"a": 1}))),
        requested(2, "compressor"),
        event_pb2.Event(trials_requested=asked),
        event_pb2.Event(parameters_generated=answer),
        scheduled("t", 3, to_value({})),
        ended(3, trial_pb2.TRIAL_STATE_FAILED),
        experiment_ended(),
    )

    assert list(log_messages.events_of(payload)) == [
        events.JobCreated({"a": 1}),
        events.AlgorithmRequested(2, "", "compressor"),
        events.TrialsRequested("r", (3,)),
        events.ParametersGenerated("r", (3,), exhausted=True),
        events.TrialScheduled("t", 3),
        events.TrialEnded("t0003", "FAILED"),
        events.ExperimentEnded(),
    ]
    assert log_messages.job_in(payload) == {"a": 1}


def test_experiment_with_a_tuner_has_no_job() -> None:
    payload = batch(created(), requested(1))

    assert log_messages.job_in(payload) is None
    assert list(log_messages.events_of(payload)) == [events.JobCreated(None)]


def test_parameters_of_a_step_name_its_checkpoint_and_the_one_before() -> None:
    message = log_messages.report_to_proto(STEP, job_of()).parameters_generated

    (item,) = message.parameters
    assert (message.request_id, message.deferred, item.parameter_id) == ("r", 1, 5)
    assert from_value(item.parameters) == {
        "job": job_of(),
        "step": 2,
        "load_checkpoint_dir": "step-0001",
        "save_checkpoint_dir": "step-0002",
    }
    assert from_value(item.provenance) == {"algorithm": "compressor", "step": 2, "kind": "prune"}


def test_first_step_loads_nothing() -> None:
    first = reports.StepGenerated("r", 0, Step(1, "prune"))

    message = log_messages.report_to_proto(first, {}).parameters_generated

    assert "load_checkpoint_dir" not in from_value(message.parameters[0].parameters)


def test_other_reports_are_converted() -> None:
    convert = log_messages.report_to_proto

    assert convert(reports.Started(2), {}).algorithm_started.generation == 2
    assert convert(reports.Completed("r"), {}).parameters_generated.exhausted
    gave_up = convert(reports.GaveUp(3, "why"), {}).algorithm_gave_up
    assert (gave_up.generation, gave_up.reason) == (3, "why")


def test_message_ids_differ_between_reports_and_generations() -> None:
    later = reports.StepGenerated("", 6, Step(3, "speedup"))
    made: list[reports.Report] = [
        reports.Started(1), STEP, later, reports.Completed("r"), reports.GaveUp(1, "x")
    ]  # fmt: skip

    ids = {log_messages.message_id("e", generation, one) for generation in (1, 2) for one in made}

    assert len(ids) == 10
    assert log_messages.message_id("e", 1, STEP) == "e.1.step.2.r.5"
