"""Conversion of log messages to events, and of host outputs to messages for the manager.

Values in the blob store are loaded by the caller: `blobs_of` lists what `events_of` needs.
"""

from collections.abc import Iterator
from typing import Any, Final
from zlib import crc32

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import config_pb2, event_pb2, experiment_pb2, inbox_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import to_value
from svc_dispatcher.domain import answers, events
from svc_dispatcher.domain.tuner_labels import TunerLabels
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Payload, Position

_END_STATES: Final = {
    experiment_pb2.EXPERIMENT_STATE_STOPPED,
    experiment_pb2.EXPERIMENT_STATE_ERROR,
}
_ALGORITHM: Final = "algorithm"
"""Key of a provenance: name or class of the tuner."""
_LABEL: Final = "tuner"
"""Key of a provenance: label under which results are compared, where it is not the name."""
_LISTED_LABEL: Final = "listed_as"
"""Key of a provenance: label in the list of several tuners, where the other one differs."""
_STATE_PREFIX: Final = "TRIAL_STATE_"
_STATE_NAMES: Final = {
    number: name.removeprefix(_STATE_PREFIX) for name, number in trial_pb2.TrialState.items()
}


def events_of(
    sequence: int, batch: event_pb2.EventBatch
) -> Iterator[tuple[Position, events.Event]]:
    """Decode a log batch; yield (position, event) of those events that matter to an algorithm."""
    for place, event in enumerate(batch.events):
        converted = _trial_event(event)
        if converted is not None:
            yield Position(sequence, place), converted


def wants_algorithm(payload: bytes) -> bool:
    """Return whether a log batch requests an algorithm that the dispatcher hosts."""
    batch = event_pb2.EventBatch.FromString(payload)
    return any(
        event.HasField("algorithm_requested") and not event.algorithm_requested.service
        for event in batch.events
    )


def ends_experiment(payload: bytes) -> bool:
    """Return whether a log batch ends the experiment without requesting the algorithm again."""
    batch = event_pb2.EventBatch.FromString(payload)
    ended = False
    for event in batch.events:
        kind = event.WhichOneof("kind")
        if kind in {"experiment_ended", "algorithm_requested"}:
            ended = kind == "experiment_ended"
    return ended


def setup_of(event: event_pb2.ExperimentCreated) -> ExperimentSetup:
    """Extract what a host needs from `ExperimentCreated`: algorithms (or None), space, folders."""
    config = event.config
    root = config.experiment_working_directory
    return ExperimentSetup(
        experiment_id=event.experiment_id,
        directory=f"{root}/{event.experiment_id}",
        interpreter=event.interpreter,
        tuner=_choice_in(config, "tuner"),
        assessor=_choice_in(config, "assessor"),
        advisor=_choice_in(config, "advisor"),
        search_space=config.search_space,
        seed=config.seed,
        log_level=config.log_level or ("debug" if config.debug else "info"),
        gpu_indices=tuple(config.tuner_gpu_indices),
        config=config,
        trial_code_directory=config.trial_code_directory,
    )


def choice_of(config: config_pb2.AlgorithmConfig) -> AlgorithmChoice:
    """Convert a proto algorithm configuration to a choice by name, class or server address."""
    return AlgorithmChoice(
        name=config.name,
        class_name=config.custom.class_name,
        code_directory=config.custom.code_directory,
        server_address=config.server_address,
        class_args=config.class_args if config.HasField("class_args") else None,
    )


def _choice_in(config: config_pb2.ExperimentConfig, kind: str) -> AlgorithmChoice | None:
    return choice_of(getattr(config, kind)) if config.HasField(kind) else None  # type: ignore[arg-type]  # `kind` is one of three field names


def _position(message: event_pb2.EventPosition) -> Position:
    return Position(message.sequence, message.index)


def _state_changed(message: event_pb2.ExperimentStateChanged) -> events.Event | None:
    # The same as `ExperimentEnded`: a manager that dies between the two must not leave a host.
    # Older versions wrote only the name of the state.
    state = message.new_state or experiment_pb2.ExperimentState.Value(
        f"EXPERIMENT_STATE_{message.to_state}"
    )
    return events.ExperimentEnded() if state in _END_STATES else None


def _trial_event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "trials_requested":
            requested = event.trials_requested
            return events.TrialsRequested(requested.request_id, tuple(requested.parameter_ids))
        case "parameters_generated":
            return _generated(event.parameters_generated)
        case "trial_scheduled":
            scheduled = event.trial_scheduled
            return events.TrialScheduled(
                scheduled.trial_id,
                scheduled.parameter_id,
                scheduled.parameters,
                scheduled.source == trial_pb2.PARAMETER_SOURCE_CUSTOMIZED,
            )
        case "trial_started":
            return _started(event.trial_started)
        case "metric_reported":
            return _metric(event.metric_reported)
        case "trial_stop_requested":
            stop = event.trial_stop_requested
            early = stop.end_state == trial_pb2.TRIAL_STATE_EARLY_STOPPED
            return events.TrialStopRequested(stop.trial_id, early=early)
        case "trial_ended":
            ended = event.trial_ended
            return events.TrialEnded(
                ended.trial_id, _end_state(ended), ended.ended_at.ToMilliseconds()
            )
        case _:
            return _algorithm_event(event)


def _started(message: event_pb2.TrialStarted) -> events.Event | None:
    """Convert the start of an attempt to an event; None if the message has no time."""
    started_at_ms = message.started_at.ToMilliseconds()
    return events.TrialStarted(message.trial_id, started_at_ms) if started_at_ms else None


def _end_state(ended: event_pb2.TrialEnded) -> str:
    """Return a trial's end state for the algorithm; lost infrastructure is `SYS_CANCELED`."""
    return "SYS_CANCELED" if ended.infrastructure else _STATE_NAMES[ended.state]


def _generated(message: event_pb2.ParametersGenerated) -> events.Event:
    # The label of the tuner, of several, that proposed parameters; and the label under which
    # their result is compared.
    texts = [(item.parameter_id, _texts(item.provenance)) for item in message.parameters]
    return events.ParametersGenerated(
        message.request_id,
        tuple((item.parameter_id, item.parameters) for item in message.parameters),
        message.exhausted,
        message.deferred,
        _position(message.based_on),
        tuple(
            (parameter_id, proposer)
            for parameter_id, provenance in texts
            if (proposer := provenance.get(_LISTED_LABEL) or provenance.get(_LABEL))
        ),
        frozenset(
            label
            for _, provenance in texts
            if (label := provenance.get(_LABEL) or provenance.get(_ALGORITHM))
        ),
    )


def _texts(provenance: value_pb2.Value) -> dict[str, str]:
    """Return a provenance map's texts by key; a value that is no text becomes empty."""
    # Reversed: of a key that occurs twice, the first counts.
    return {entry.key: entry.value.string_value for entry in reversed(provenance.map_value.entries)}


def _metric(message: event_pb2.MetricReported) -> events.Event:
    return events.MetricReported(
        message.trial_id,
        message.attempt,
        message.parameter_id,
        message.metric.type == metric_pb2.METRIC_TYPE_FINAL,
        message.metric.sequence,
        message.metric.value,
    )


def _algorithm_event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "algorithm_requested":
            requested = event.algorithm_requested
            return events.AlgorithmRequested(
                requested.generation,
                requested.directory,
                requested.service,
                choice_of(requested.tuner) if requested.HasField("tuner") else None,
            )
        case "algorithm_started":
            started = event.algorithm_started
            provenance = tuple(sorted(started.provenance.items()))
            return events.AlgorithmStarted(started.generation, provenance)
        case "algorithm_failed":
            failed = event.algorithm_failed
            return events.AlgorithmFailed(failed.call, _position(failed.position))
        case "algorithm_diverged":
            return events.AlgorithmDiverged(event.algorithm_diverged.parameter_id)
        case _:
            return _experiment_event(event)


def _experiment_event(event: event_pb2.Event) -> events.Event | None:
    match event.WhichOneof("kind"):
        case "experiment_created":
            return events.ExperimentCreated(setup_of(event.experiment_created))
        case "search_space_changed":
            return events.SearchSpaceChanged(event.search_space_changed.search_space)
        case "data_imported":
            return events.DataImported(event.data_imported.data)
        case "custom_trial_added":
            added = event.custom_trial_added
            return events.CustomTrialAdded(added.parameter_id, added.parameters)
        case "experiment_state_changed":
            return _state_changed(event.experiment_state_changed)
        case "experiment_ended":
            return events.ExperimentEnded()
        case "experiment_moved":
            moved = event.experiment_moved
            return events.ExperimentMoved(moved.directory, moved.trial_code_directory)
        case _:
            return None


def blobs_of(batch: event_pb2.EventBatch) -> list[value_pb2.Value]:
    """Return users' values in a batch that are references to the blob store, to be resolved."""
    return [
        value
        for event in batch.events
        for value in _values_of(event)
        if value.WhichOneof("kind") == "blob_value"
    ]


def _values_of(event: event_pb2.Event) -> list[value_pb2.Value]:
    kind = event.WhichOneof("kind")
    if kind == "metric_reported":
        return [event.metric_reported.metric.value]
    if kind == "trial_scheduled":
        return [event.trial_scheduled.parameters]
    if kind == "parameters_generated":
        return [item.parameters for item in event.parameters_generated.parameters]
    if kind == "experiment_created":
        config = event.experiment_created.config
        choices = (config.tuner, config.assessor, config.advisor)
        return [
            config.search_space,
            config.search.known,
            config.search.earlier,
            *(choice.class_args for choice in choices),
        ]
    if kind == "algorithm_requested":
        return [event.algorithm_requested.tuner.class_args]
    if kind == "search_space_changed":
        return [event.search_space_changed.search_space]
    if kind == "data_imported":
        return [event.data_imported.data]
    if kind == "custom_trial_added":
        return [event.custom_trial_added.parameters]
    return []


def report_to_proto(report: answers.Report) -> inbox_pb2.InboxMessage:
    """Convert a report on the algorithm to the INBOX message for the manager."""
    message = inbox_pb2.InboxMessage()
    if isinstance(report, answers.Generated):
        _write_generated(message.parameters_generated, report)
    elif isinstance(report, answers.StopAdvised):
        advice = message.stop_advice
        advice.trial_id = report.trial_id
        advice.reason = "the assessor found it not worth going on"
        _write_position(advice.based_on, report.position)
    elif isinstance(report, answers.Started):
        started = message.algorithm_started
        started.generation = report.generation
        started.lookahead = report.ready.lookahead
        started.assesses = report.ready.assesses
        started.provenance.update(report.ready.provenance)
        started.learned_metrics.extend(report.ready.learned_metrics)
    elif isinstance(report, answers.CallFailed):
        failed = message.algorithm_failed
        failed.call = report.call
        failed.traceback = report.traceback
        failed.skipped = report.skipped
        _write_position(failed.position, report.position)
    elif isinstance(report, answers.Diverged):
        diverged = message.algorithm_diverged
        diverged.parameter_id = report.parameter_id
        diverged.recorded.CopyFrom(as_value(report.recorded))
        diverged.replayed.CopyFrom(as_value(report.replayed))
    else:
        message.algorithm_gave_up.generation = report.generation
        message.algorithm_gave_up.reason = report.reason
    return message


def _write_generated(message: event_pb2.ParametersGenerated, report: answers.Generated) -> None:
    message.request_id = report.request_id
    message.exhausted = report.exhausted
    message.deferred = report.deferred
    message.released_checkpoints.extend(report.released_checkpoints)
    _write_position(message.based_on, report.position)
    for suggestion in report.suggestions:
        item = message.parameters.add()
        item.parameter_id = suggestion.parameter_id
        item.parameters.CopyFrom(as_value(suggestion.parameters))
        item.provenance.CopyFrom(as_value(suggestion.provenance))
        _set_distinct_label(item.provenance, report.labels)


def _set_distinct_label(provenance: value_pb2.Value, labels: TunerLabels) -> None:
    """If an earlier tuner had a suggestion's label, number it in place; keep a listed one, too."""
    texts = _texts(provenance)
    listed = texts.get(_LABEL, "")
    label = listed or texts.get(_ALGORITHM, "")
    distinct = labels.distinct(label)
    if distinct == label:
        return
    _set_text(provenance, _LABEL, distinct)
    if listed:
        _set_text(provenance, _LISTED_LABEL, listed)


def _set_text(provenance: value_pb2.Value, key: str, text: str) -> None:
    for entry in provenance.map_value.entries:
        if entry.key == key:
            entry.value.string_value = text
            return
    provenance.map_value.entries.add(key=key).value.string_value = text


def _write_position(message: event_pb2.EventPosition, position: Position) -> None:
    message.sequence, message.index = position


def message_id(experiment_id: str, generation: int, report: answers.Report) -> str:
    """Return a report's message id, equal for its repetitions, so that the bus discards them."""
    if isinstance(report, answers.Generated):
        ids = "-".join(str(item.parameter_id) for item in report.suggestions)
        late = f"late.{report.position.sequence}.{report.position.place}.{ids}"
        key = f"parameters.{report.request_id}" if report.request_id else late
    elif isinstance(report, answers.StopAdvised):
        key = f"stop.{report.trial_id}"
    elif isinstance(report, answers.CallFailed):
        # A failure that ended the host may be repeated by the next host.
        key = f"failed.{report.call}.{report.position.sequence}.{report.position.place}"
        key += "" if report.skipped else f".{crc32(report.traceback.encode())}"
    elif isinstance(report, answers.Diverged):
        key = f"diverged.{report.parameter_id}"
    else:
        key = type(report).__name__
    return f"{experiment_id}.{generation}.{key}"


def as_value(payload: Payload) -> value_pb2.Value:
    """Return a payload, which must be a proto `Value`; an unset one for None.

    Raises:
        TypeError: the payload is not a message.
    """
    if payload is None:
        return value_pb2.Value()
    if not isinstance(payload, value_pb2.Value):
        raise TypeError(f"a payload must be a message Value, got {type(payload).__name__}")
    return payload


def payload_of(data: Any) -> Payload:  # noqa: ANN401 - any JSON value
    """Convert a JSON-like value, NaN included, to a proto `Value`; raise for other types or depth.

    Raises:
        TypeError: a part of it has no JSON form.
        ValueError: it is nested too deeply, or has a text that UTF-8 cannot encode.
    """
    return to_value(data)
