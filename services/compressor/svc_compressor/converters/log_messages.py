"""Conversion of log messages to events of a job, and of reports to messages for the manager."""

from collections.abc import Iterator
from typing import Final

from nni_proto.experiment.v1 import event_pb2, experiment_pb2, inbox_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.trial_blobs import LOAD_CHECKPOINT_KEY, SAVE_CHECKPOINT_KEY
from nni_wire.values import from_value, write_value
from svc_common import subjects
from svc_compressor.domain import events, reports

_STATE_PREFIX: Final = "TRIAL_STATE_"
_STATE_NAMES: Final = {
    number: name.removeprefix(_STATE_PREFIX) for name, number in trial_pb2.TrialState.items()
}
_END_STATES: Final = {
    experiment_pb2.EXPERIMENT_STATE_STOPPED,
    experiment_pb2.EXPERIMENT_STATE_ERROR,
}


def wants_compressor(payload: bytes) -> bool:
    """Return whether a log batch starts a compression job, or resumes one."""
    batch = event_pb2.EventBatch.FromString(payload)
    return any(_is_ours(event) for event in batch.events)


def ends_job(payload: bytes) -> bool:
    """Return whether a log batch ends the experiment without starting it again."""
    batch = event_pb2.EventBatch.FromString(payload)
    ended = False
    for event in batch.events:
        if isinstance(_ended(event), events.ExperimentEnded):
            ended = True
        elif event.HasField("algorithm_requested"):
            ended = False
    return ended


def events_of(payload: bytes) -> Iterator[events.Event]:
    """Decode a log batch; yield the events that matter to a job, in order."""
    for event in event_pb2.EventBatch.FromString(payload).events:
        converted = _event(event)
        if converted is not None:
            yield converted


def job_in(payload: bytes) -> object:
    """Return the job's description if a batch creates the experiment; None: it does not."""
    for event in events_of(payload):
        if isinstance(event, events.JobCreated):
            return event.job
    return None


def _is_ours(event: event_pb2.Event) -> bool:
    return event.algorithm_requested.service == subjects.COMPRESSOR


def _event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "experiment_created":
            config = event.experiment_created.config
            job = from_value(config.compression.job) if config.HasField("compression") else None
            return events.JobCreated(job)
        case "algorithm_requested" if _is_ours(event):
            requested = event.algorithm_requested
            return events.AlgorithmRequested(
                requested.generation, requested.directory, requested.service
            )
        case "trials_requested":
            asked = event.trials_requested
            return events.TrialsRequested(asked.request_id, tuple(asked.parameter_ids))
        case "parameters_generated":
            answer = event.parameters_generated
            ids = tuple(item.parameter_id for item in answer.parameters)
            return events.ParametersGenerated(answer.request_id, ids, answer.exhausted)
        case "trial_scheduled":
            scheduled = event.trial_scheduled
            return events.TrialScheduled(scheduled.trial_id, scheduled.parameter_id)
        case "trial_ended":
            trial = event.trial_ended
            return events.TrialEnded(trial.trial_id, _STATE_NAMES[trial.state])
        case _:
            return _ended(event)


def _ended(event: event_pb2.Event) -> events.ExperimentEnded | None:
    if event.HasField("experiment_ended"):
        return events.ExperimentEnded()
    # The same: a manager that dies between the two must not leave a session open.
    changed = event.HasField("experiment_state_changed")
    if changed and event.experiment_state_changed.new_state in _END_STATES:
        return events.ExperimentEnded()
    return None


def report_to_proto(report: reports.Report, job: object) -> inbox_pb2.InboxMessage:
    """Convert a report, with a step's parameters made from the job, to the manager's INBOX message.

    Args:
        report: the report.
        job: description of the job, for the parameters of its steps.
    """
    message = inbox_pb2.InboxMessage()
    match report:
        case reports.Started():
            message.algorithm_started.generation = report.generation
        case reports.StepGenerated():
            _write_step(message.parameters_generated, report, job)
        case reports.Completed():
            message.parameters_generated.request_id = report.request_id
            message.parameters_generated.exhausted = True
        case reports.GaveUp():
            message.algorithm_gave_up.generation = report.generation
            message.algorithm_gave_up.reason = report.reason
    return message


def _write_step(
    message: event_pb2.ParametersGenerated, report: reports.StepGenerated, job: object
) -> None:
    message.request_id = report.request_id
    message.deferred = report.deferred
    step = report.step
    parameters = {"job": job, "step": step.number, SAVE_CHECKPOINT_KEY: checkpoint(step.number)}
    if step.number > 1:
        parameters[LOAD_CHECKPOINT_KEY] = checkpoint(step.number - 1)
    item = message.parameters.add(parameter_id=report.parameter_id)
    write_value(item.parameters, parameters)
    origin = {"algorithm": subjects.COMPRESSOR, "step": step.number, "kind": step.kind}
    write_value(item.provenance, origin)


def checkpoint(number: int) -> str:
    """Return the checkpoint name of a step, `step-0003`, as the parameters of trials have it.

    Examples:
        >>> checkpoint(3)
        'step-0003'
    """
    return f"step-{number:04d}"


def message_id(experiment_id: str, generation: int, report: reports.Report) -> str:
    """Return a message id of generation and report, by which the bus discards repetitions.

    Of a step it has number, request id and parameter id; of the end of the job the request id.
    """
    match report:
        case reports.StepGenerated():
            key = f"step.{report.step.number}.{report.request_id}.{report.parameter_id}"
        case reports.Completed():
            key = f"completed.{report.request_id}"
        case reports.Started() | reports.GaveUp():
            key = type(report).__name__
    return f"{experiment_id}.{generation}.{key}"
