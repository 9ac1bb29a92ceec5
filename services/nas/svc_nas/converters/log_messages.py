"""Conversion of log messages to events of an exploration, and of reports to the manager's messages.

Values in the blob store are loaded by the caller: `blobs_of` lists what `events_of` needs.
"""

from collections.abc import Iterator
from typing import Final
from zlib import crc32

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import event_pb2, experiment_pb2, inbox_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, write_value
from svc_common import subjects
from svc_nas.domain import events, reports

_TRIAL_PREFIX: Final = "TRIAL_STATE_"
_TRIAL_STATES: Final = {
    number: name.removeprefix(_TRIAL_PREFIX) for name, number in trial_pb2.TrialState.items()
}
_PREFIX: Final = "EXPERIMENT_STATE_"
_STATES: Final = {
    number: name.removeprefix(_PREFIX) for name, number in experiment_pb2.ExperimentState.items()
}
_END_STATES: Final = {
    experiment_pb2.EXPERIMENT_STATE_STOPPED,
    experiment_pb2.EXPERIMENT_STATE_ERROR,
}
_KEY: Final = "key"
"""Entry of a candidate's provenance: the key under which its strategy's process submitted it."""


def wants_nas(payload: bytes) -> bool:
    """Return whether a log batch starts an exploration, or resumes one."""
    batch = event_pb2.EventBatch.FromString(payload)
    return any(_is_ours(event) for event in batch.events)


def ends_exploration(payload: bytes) -> bool:
    """Return whether a log batch ends the experiment without starting it again."""
    batch = event_pb2.EventBatch.FromString(payload)
    ended = False
    for event in batch.events:
        if isinstance(_ended(event), events.ExperimentEnded):
            ended = True
        elif event.HasField("algorithm_requested"):
            ended = False
    return ended


def blobs_of(batch: event_pb2.EventBatch) -> list[value_pb2.Value]:
    """Return the metrics and parameters of a batch that are references to the blob store."""
    return [
        value
        for event in batch.events
        for value in _values_of(event)
        if value.WhichOneof("kind") == "blob_value"
    ]


def _values_of(event: event_pb2.Event) -> list[value_pb2.Value]:
    match event.WhichOneof("kind"):
        case "metric_reported":
            return [event.metric_reported.metric.value]
        case "parameters_generated":
            return [item.parameters for item in event.parameters_generated.parameters]
        case _:
            return []


def events_of(batch: event_pb2.EventBatch) -> Iterator[events.Event]:
    """Convert a parsed batch; yield the domain's events that matter to an exploration, in order."""
    for event in batch.events:
        converted = _trial_event(event) or _experiment_event(event)
        if converted is not None:
            yield converted


def _is_ours(event: event_pb2.Event) -> bool:
    return event.algorithm_requested.service == subjects.NAS


def _trial_event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "trials_requested":
            asked = event.trials_requested
            return events.TrialsRequested(asked.request_id, tuple(asked.parameter_ids))
        case "parameters_generated":
            return _candidates(event.parameters_generated)
        case "trial_scheduled":
            scheduled = event.trial_scheduled
            return events.TrialScheduled(scheduled.trial_id, scheduled.parameter_id)
        case "trial_lost":
            return events.TrialLost(event.trial_lost.trial_id)
        case "metric_reported":
            metric = event.metric_reported.metric
            return events.MetricReported(
                event.metric_reported.trial_id,
                from_value(metric.value),
                metric.type == metric_pb2.METRIC_TYPE_FINAL,
            )
        case "trial_ended":
            trial = event.trial_ended
            return events.TrialEnded(trial.trial_id, _TRIAL_STATES[trial.state])
        case _:
            return None


def _candidates(answer: event_pb2.ParametersGenerated) -> events.CandidatesRecorded:
    candidates = tuple(
        events.RecordedCandidate(
            item.parameter_id, _key_of(item.provenance), from_value(item.parameters)
        )
        for item in answer.parameters
    )
    return events.CandidatesRecorded(answer.request_id, candidates, answer.exhausted)


def _key_of(provenance: value_pb2.Value) -> str:
    origin = from_value(provenance)
    return str(origin.get(_KEY, "")) if isinstance(origin, dict) else ""


def _experiment_event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "experiment_created":
            return _created(event.experiment_created)
        case "algorithm_requested" if _is_ours(event):
            requested = event.algorithm_requested
            return events.AlgorithmRequested(
                requested.generation, requested.directory, requested.service
            )
        case "algorithm_started":
            return events.AlgorithmStarted(event.algorithm_started.generation)
        case "budget_changed" if event.budget_changed.HasField("trial_concurrency"):
            return events.BudgetChanged(event.budget_changed.trial_concurrency)
        case "experiment_moved":
            moved = event.experiment_moved
            return events.ExperimentMoved(moved.directory, moved.trial_code_directory)
        case "experiment_state_changed":
            state = event.experiment_state_changed.new_state
            return _ended(event) or events.StateChanged(_STATES.get(state, ""))
        case _:
            return _ended(event)


def _created(created: event_pb2.ExperimentCreated) -> events.ExplorationCreated:
    config = created.config
    return events.ExplorationCreated(
        document_sha256=config.nas.document.sha256,
        strategy=config.nas.strategy,
        evaluator=config.nas.evaluator,
        model_format=config.nas.model_format,
        interpreter=created.interpreter,
        code_directory=config.trial_code_directory,
        concurrency=config.trial_concurrency,
        seed=config.seed,
        log_level=config.log_level or "info",
        code_archive=config.code_archive.sha256,
    )


def _ended(event: event_pb2.Event) -> events.ExperimentEnded | None:
    if event.HasField("experiment_ended"):
        return events.ExperimentEnded()
    # The same: a manager that dies between the two must not leave a session open.
    changed = event.HasField("experiment_state_changed")
    if changed and event.experiment_state_changed.new_state in _END_STATES:
        return events.ExperimentEnded()
    return None


def report_to_proto(report: reports.Report) -> inbox_pb2.InboxMessage:
    """Convert a report to the INBOX message for the manager."""
    message = inbox_pb2.InboxMessage()
    match report:
        case reports.Started():
            message.algorithm_started.generation = report.generation
        case reports.CandidatesGenerated():
            _write_candidates(message.parameters_generated, report)
        case reports.TrialStopped():
            message.stop_advice.trial_id = report.trial_id
            message.stop_advice.reason = "the strategy stops this candidate"
        case reports.GaveUp():
            message.algorithm_gave_up.generation = report.generation
            message.algorithm_gave_up.reason = report.reason
    return message


def _write_candidates(
    message: event_pb2.ParametersGenerated, report: reports.CandidatesGenerated
) -> None:
    message.request_id = report.request_id
    message.deferred = report.deferred
    message.exhausted = report.exhausted
    for parameter_id, candidate in report.candidates:
        item = message.parameters.add(parameter_id=parameter_id)
        write_value(item.parameters, candidate.parameters)
        write_value(item.provenance, {"algorithm": subjects.NAS, _KEY: candidate.key})


def message_id(experiment_id: str, generation: int, report: reports.Report) -> str:
    """Return a message id of generation and report, by which the bus discards repetitions.

    Of a report it has the request or trial id, or a hash of the candidates of deferred ids.
    """
    match report:
        case reports.CandidatesGenerated(request_id) if request_id:
            name = f"answer.{request_id}"
        case reports.CandidatesGenerated(_, candidates):
            text = " ".join(f"{number}:{one.key}" for number, one in candidates)
            name = f"late.{len(candidates)}.{crc32(text.encode()):08x}"
        case reports.TrialStopped(trial_id):
            name = f"stop.{trial_id}"
        case reports.Started() | reports.GaveUp():
            name = type(report).__name__
    return f"{experiment_id}.{generation}.{name}"
