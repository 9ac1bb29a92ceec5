"""What a replay tells, to messages; pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from nni_proto.experiment.v1 import replay_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_wire.values import from_value
from svc_dispatcher.converters.log_messages import as_value
from svc_dispatcher.domain.replay import Outcome, Progress, Told, TrialDifference, Verdict

_TOLD_STOPS: Final = 100


def told_to_proto(word: Told) -> pb.ReplaySuggestionsResponse:
    """Give the message for one word of a replay."""
    if isinstance(word, Progress):
        return pb.ReplaySuggestionsResponse(
            progress=replay_pb2.ReplayProgress(handled=word.handled, total=word.total)
        )
    if isinstance(word, TrialDifference):
        return pb.ReplaySuggestionsResponse(difference=_difference(word))
    return pb.ReplaySuggestionsResponse(verdict=_verdict(word))


def _difference(word: TrialDifference) -> replay_pb2.ReplayDifference:
    found = word.difference
    message = replay_pb2.ReplayDifference(
        generation=found.generation, parameter_id=found.parameter_id, trial_id=word.trial_id
    )
    if found.recorded is not None:
        message.recorded.CopyFrom(as_value(found.recorded))
    if found.drawn is not None:
        message.drawn.CopyFrom(as_value(found.drawn))
    if found.recorded is not None and found.drawn is not None:
        recorded, drawn = from_value(message.recorded), from_value(message.drawn)
        message.parameter = first_difference(recorded, drawn) or ""
    return message


def _verdict(word: Outcome) -> replay_pb2.ReplayVerdict:
    verdict: Verdict = word.verdict
    message = replay_pb2.ReplayVerdict(
        repeatable=verdict.repeatable,
        suggestions=verdict.suggestions,
        equal=verdict.equal,
        generations=verdict.generations,
        stops=verdict.stops,
        equal_stops=verdict.stops - len(verdict.missing_stops),
        missing_stops=verdict.missing_stops[:_TOLD_STOPS],
        reason=verdict.reason,
        changed_versions=[
            replay_pb2.ReplayVersion(
                name=version.name, recorded=version.recorded, present=version.present
            )
            for version in verdict.changed_versions
        ],
    )
    message.duration.FromNanoseconds(round(word.duration_s * 1e9))
    return message


def first_difference(recorded: object, drawn: object, path: str = "") -> str | None:
    """Give the path of the first place where two JSON values differ; None: they are equal.

    The order is that of the recorded value; a name that only one of them has is a difference. An
    empty path stands for the values as a whole.
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
        assert isinstance(recorded, Sequence), "just asked"
        assert isinstance(drawn, Sequence), "just asked"
        for place, (ours, theirs) in enumerate(zip(recorded, drawn, strict=False)):
            found = first_difference(ours, theirs, f"{path}[{place}]")
            if found is not None:
                return found
        shorter = min(len(recorded), len(drawn))
        return None if len(recorded) == len(drawn) else f"{path}[{shorter}]"
    # As texts: 1 is not 1.0 and NaN is NaN, as for the host that compares.
    return None if json.dumps(recorded) == json.dumps(drawn) else path


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
