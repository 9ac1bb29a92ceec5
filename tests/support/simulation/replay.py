"""In-process replay of a log: the dispatcher's comparison over the real command loop."""

from __future__ import annotations

from collections.abc import Iterable

from nni_proto.experiment.v1 import event_pb2
from svc_dispatcher.converters import log_messages
from svc_dispatcher.domain import answers
from svc_dispatcher.domain.replay import (
    Comparison,
    RecordedGeneration,
    ReplayResult,
    SuggestionDifference,
    recorded_generations,
    replay_result,
)
from tests.support.simulation.dispatcher import LocalHost


def replay(log: Iterable[tuple[int, bytes]]) -> tuple[ReplayResult, list[SuggestionDifference]]:
    """Recompute every suggestion of a log; return the result and the differences.

    Args:
        log: (stream sequence, batch) of every append; large values must stand in it.
    """
    positioned_events = (
        item
        for sequence, payload in log
        for item in log_messages.events_of(sequence, event_pb2.EventBatch.FromString(payload))
    )
    comparisons = [_compare(generation) for generation in recorded_generations(positioned_events)]
    differences = [item for one in comparisons for item in one.take_differences()]
    return replay_result(comparisons), differences


def _compare(generation: RecordedGeneration) -> Comparison:
    comparison, host = Comparison(generation), LocalHost()
    for command in generation.commands:
        outputs, alive = host.handle(command)
        for output in outputs:
            if isinstance(output, answers.Done):
                comparison.handled(command)
            else:
                comparison.add_output(output)
        if not alive:
            break
    return comparison
