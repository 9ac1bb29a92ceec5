"""Conversion of replay updates to protobuf messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from nni_proto.experiment.v1 import replay_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_wire.values import from_value
from svc_dispatcher.converters.log_messages import as_value
from svc_dispatcher.domain.replay import (
    ReplayFinished,
    ReplayProgress,
    ReplayResult,
    ReplayUpdate,
    TrialDifference,
)

_STOPS_LIMIT: Final = 100


def update_to_proto(update: ReplayUpdate) -> pb.ReplaySuggestionsResponse:
    """Convert a replay's progress, difference or verdict to the gRPC response."""
    if isinstance(update, ReplayProgress):
        return pb.ReplaySuggestionsResponse(
            progress=replay_pb2.ReplayProgress(handled=update.handled, total=update.total)
        )
    if isinstance(update, TrialDifference):
        return pb.ReplaySuggestionsResponse(difference=_difference(update))
    return pb.ReplaySuggestionsResponse(verdict=_result(update))


def _difference(update: TrialDifference) -> replay_pb2.ReplayDifference:
    found = update.difference
    message = replay_pb2.ReplayDifference(
        generation=found.generation, parameter_id=found.parameter_id, trial_id=update.trial_id
    )
    if found.recorded is not None:
        message.recorded.CopyFrom(as_value(found.recorded))
    if found.drawn is not None:
        message.drawn.CopyFrom(as_value(found.drawn))
    if found.recorded is not None and found.drawn is not None:
        recorded, drawn = from_value(message.recorded), from_value(message.drawn)
        message.parameter = first_difference(recorded, drawn) or ""
    return message


def _result(update: ReplayFinished) -> replay_pb2.ReplayVerdict:
    result: ReplayResult = update.result
    message = replay_pb2.ReplayVerdict(
        repeatable=result.repeatable,
        suggestions=result.suggestions,
        equal=result.equal,
        generations=result.generations,
        stops=result.stops,
        equal_stops=result.stops - len(result.missing_stops),
        missing_stops=result.missing_stops[:_STOPS_LIMIT],
        reason=result.reason,
        changed_versions=[
            replay_pb2.ReplayVersion(
                name=version.name, recorded=version.recorded, present=version.present
            )
            for version in result.changed_versions
        ],
    )
    message.duration.FromNanoseconds(round(update.duration_s * 1e9))
    return message


def first_difference(recorded: object, drawn: object, path: str = "") -> str | None:
    """Return the path of two JSON values' first difference, or None; NaN equals NaN, 1 is not 1.0.

    Paths follow the order of the recorded value; a name in only one of them is a difference. An
    empty path stands for the whole values.
    """
    if isinstance(recorded, Mapping) and isinstance(drawn, Mapping):
        for name in [*recorded, *(name for name in drawn if name not in recorded)]:
            inner = f"{path}.{name}" if path else str(name)
            if name not in recorded or name not in drawn:
                return inner
            found = first_difference(recorded[name], drawn[name], inner)
            if found is not None:
                return found
        return None
    if _is_list(recorded) and _is_list(drawn):
        assert isinstance(recorded, Sequence), "checked by _is_list"
        assert isinstance(drawn, Sequence), "checked by _is_list"
        for place, (ours, theirs) in enumerate(zip(recorded, drawn, strict=False)):
            found = first_difference(ours, theirs, f"{path}[{place}]")
            if found is not None:
                return found
        shorter = min(len(recorded), len(drawn))
        return None if len(recorded) == len(drawn) else f"{path}[{shorter}]"
    # Compared as texts, as the host does: 1 is not 1.0, and NaN equals NaN.
    return None if json.dumps(recorded) == json.dumps(drawn) else path


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
