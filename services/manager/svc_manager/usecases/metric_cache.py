"""Metrics of experiments, read from their logs when somebody asks.

The fold keeps only what decisions need, so that a long experiment does not fill the memory; a book
is caught up with its log at each question and forgotten when others were asked for since.
"""

import asyncio
from collections import OrderedDict
from typing import Final, TypeAlias

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import trial_service_pb2
from svc_common.messaging.ports import EventLog
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.converters.events import batch_from_bytes

BOOKS_KEPT: Final = 8
Row: TypeAlias = tuple[int, trial_service_pb2.TrialMetric]
"""A metric, and its number among all that the log has: the same whenever the log is read."""


class ExperimentMetrics:
    """All metrics of one experiment, in the order of its log."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.by_trial: dict[str, list[Row]] = {}
        self._count = 0
        self.sequence = 0
        self.lock = asyncio.Lock()

    def take(self, event: event_pb2.Event) -> None:
        """Take in a fact."""
        kind = event.WhichOneof("kind")
        if kind == "metric_reported":
            reported = event.metric_reported
            metric = trial_service_pb2.TrialMetric(
                trial_id=reported.trial_id,
                parameter_id=reported.parameter_id,
                metric=reported.metric,
            )
            self._count += 1
            self.rows.append((self._count, metric))
            self.by_trial.setdefault(metric.trial_id, []).append(self.rows[-1])
        elif kind == "trial_lost":
            self._forget_intermediates(event.trial_lost.trial_id)

    def _forget_intermediates(self, trial_id: str) -> None:
        """The next attempt reports them again."""
        kept = [row for row in self.by_trial.get(trial_id, []) if _is_final(row)]
        if len(kept) != len(self.by_trial.get(trial_id, [])):
            self.by_trial[trial_id] = kept
            self.rows = [row for row in self.rows if row[1].trial_id != trial_id or _is_final(row)]


def _is_final(row: Row) -> bool:
    return row[1].metric.type == metric_pb2.METRIC_TYPE_FINAL


class MetricCache:
    """Books of the experiments asked for last.

    Args:
        events: the logs.
    """

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._books: OrderedDict[str, ExperimentMetrics] = OrderedDict()

    async def read(self, actor: ExperimentActor) -> ExperimentMetrics:
        """Give the book of an experiment, up to date with what its actor has appended."""
        book = self._books.setdefault(actor.id, ExperimentMetrics())
        self._books.move_to_end(actor.id)
        while len(self._books) > BOOKS_KEPT:
            self._books.popitem(last=False)
        async with book.lock:
            if book.sequence < actor.sequence:
                async for message in self._events.read(actor.id, book.sequence):
                    for event in batch_from_bytes(message.payload).events:
                        book.take(event)
                    book.sequence = message.sequence
        return book

    def forget(self, experiment_id: str) -> None:
        """Drop the book of a deleted experiment."""
        self._books.pop(experiment_id, None)
