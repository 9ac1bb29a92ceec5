"""Cache of experiments' metrics, read from their logs on demand.

The fold keeps only what decisions need, so that a long experiment does not fill the memory. A
cached experiment is updated from its log at each query, and evicted after queries of others.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, TypeAlias

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import trial_service_pb2
from svc_common.messaging.ports import EventLog
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.converters.events import batch_from_bytes
from svc_manager.converters.scalars import numbers_of
from svc_manager.domain.values import DEFAULT_METRIC

CACHE_SIZE: Final = 8
"""Experiments in the cache."""
Row: TypeAlias = tuple[int, trial_service_pb2.TrialMetric]
"""A metric, and its number in the log, which is the same at every reading."""
Ranges: TypeAlias = dict[str, tuple[float, float]]
"""Smallest and largest finite number of each metric."""


class ExperimentMetrics:
    """Metrics of an experiment's trials, collected from its log events, by trial and by type."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.by_trial: dict[str, list[Row]] = {}
        self.by_type: dict[int, list[Row]] = {}
        self.ranges: dict[str, Ranges] = {}
        """Ranges of the intermediate results, by trial."""
        self._count = 0
        self.sequence = 0
        self.lock = asyncio.Lock()

    def add(self, event: event_pb2.Event) -> None:
        """Record a `metric_reported` event's metric; for `trial_lost` drop intermediate ones."""
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
            self.by_type.setdefault(metric.metric.type, []).append(self.rows[-1])
            if metric.metric.type == metric_pb2.METRIC_TYPE_PERIODICAL:
                _extend(self.ranges.setdefault(metric.trial_id, {}), metric.metric)
        elif kind == "trial_lost":
            self._forget_intermediates(event.trial_lost.trial_id)

    def _forget_intermediates(self, trial_id: str) -> None:
        """Drop a lost attempt's intermediate metrics, which the next attempt reports again."""
        self.ranges.pop(trial_id, None)
        kept = [row for row in self.by_trial.get(trial_id, []) if _is_final(row)]
        if len(kept) != len(self.by_trial.get(trial_id, [])):
            self.by_trial[trial_id] = kept
            self.rows = [row for row in self.rows if row[1].trial_id != trial_id or _is_final(row)]
            self.by_type = {}
            for row in self.rows:
                self.by_type.setdefault(row[1].metric.type, []).append(row)


def _is_final(row: Row) -> bool:
    return row[1].metric.type == metric_pb2.METRIC_TYPE_FINAL


def _extend(ranges: Ranges, metric: metric_pb2.Metric) -> None:
    """Extend ranges, in place, by the finite numbers of one metric."""
    numbers = numbers_of(metric.value)
    if not isinstance(numbers, Mapping):
        numbers = {} if numbers is None else {DEFAULT_METRIC: numbers}
    for name, number in numbers.items():
        if math.isfinite(number):
            low, high = ranges.get(name, (number, number))
            ranges[name] = (min(low, number), max(high, number))


class MetricCache:
    """Cache of the metrics of the last queried experiments, read from their logs.

    Args:
        events: the logs.
    """

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._metrics: OrderedDict[str, ExperimentMetrics] = OrderedDict()

    async def read(self, actor: ExperimentActor) -> ExperimentMetrics:
        """Return an experiment's metrics; read the part of its log that the cache lacks."""
        metrics = self._metrics.setdefault(actor.id, ExperimentMetrics())
        self._metrics.move_to_end(actor.id)
        while len(self._metrics) > CACHE_SIZE:
            self._metrics.popitem(last=False)
        async with metrics.lock:
            if metrics.sequence < actor.sequence:
                async for message in self._events.read(actor.id, metrics.sequence):
                    for event in batch_from_bytes(message.payload).events:
                        metrics.add(event)
                    metrics.sequence = message.sequence
        return metrics

    def forget(self, experiment_id: str) -> None:
        """Drop the metrics of a deleted experiment."""
        self._metrics.pop(experiment_id, None)
