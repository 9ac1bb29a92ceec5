"""Metrics of a process, registered and rendered by `prometheus_client`.

The instruments of this module are collectors of the library: they count in plain dictionaries, and
make the library's metric families at scrape time. Its own instruments lock at each change, which
costs two to four times as much, and write the bound 1 as `le="1.0"`, where earlier versions
wrote `le="1"`. All instruments belong to one thread, that of the event loop.

Instruments belong to a `Registry`, which the composition root makes and the endpoint `/metrics`
renders. Names follow the conventions: base units, `_total` for counters; labels have few values,
never an id of an experiment or a trial.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import prometheus_client
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_PLAIN_0_0_4
"""Content type of `Registry.render`."""
LATENCIES_S: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
)  # fmt: skip
"""Upper bounds for operations that should take milliseconds and must not take minutes."""
DURATIONS_S: Final = (
    0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0,
)  # fmt: skip
"""Upper bounds for durations of trials."""
_PROCESS_METRICS: Final = frozenset(
    {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_start_time_seconds",
    }
)
"""Metrics of the library's `ProcessCollector` that are documented; it has more."""

Labels: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[Labels, float]
"""Label values and a value."""


class Counter:
    """Prometheus counter with one value per combination of label values.

    Args:
        name: ends in `_total`.
        text: what it counts.
        labels: names of its labels.
    """

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Add `by` to the counter's value for these label values; raise ValueError if `by` < 0."""
        values = self._values
        if labels in values and by >= 0:
            values[labels] += by
            return
        _check_labels(self._name, self._labels, labels)
        if by < 0:
            raise ValueError(f"{self._name} is a counter: by must be >= 0, got {by}")
        values[labels] = by

    def value(self, *labels: str) -> float:
        """Return the value with these labels; 0 if nothing was counted."""
        return self._values.get(labels, 0.0)

    def collect(self) -> Iterator[Metric]:
        """Yield the counter's metric family for a scrape, with its current values."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family

    def describe(self) -> Iterator[Metric]:
        """Yield the family without samples, by which the registry refuses a second one."""
        yield CounterMetricFamily(self._name, self._text, labels=self._labels)


class Gauge:
    """Prometheus gauge whose values a callback returns at each scrape.

    Args:
        name: with its unit.
        text: what it measures.
        read: returns the present samples; a label value whose state vanished is not among them.
        labels: names of its labels.
    """

    def __init__(
        self,
        name: str,
        text: str,
        read: Callable[[], Iterable[Sample]],
        labels: Sequence[str] = (),
    ) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Read the gauge's current values from its callback; yield them as a metric family."""
        family = self._family()
        for labels, value in self._read():
            family.add_metric(labels, value)
        yield family

    def describe(self) -> Iterator[Metric]:
        """Yield the family without samples, by which the registry refuses a second one."""
        yield self._family()

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._name, self._text, labels=self._labels)


class Histogram:
    """Prometheus histogram with one series per combination of label values.

    Args:
        name: with its unit.
        text: what is observed.
        bounds: upper bounds of its buckets, rising and >= 0.
        labels: names of its labels.
    """

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float] = LATENCIES_S,
        labels: Sequence[str] = (),
    ) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._labels = tuple(labels)
        self._counts: dict[Labels, list[int]] = {}
        """Number of values by bucket, each in one bucket only; the last has no upper bound."""
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Add a value to the histogram of these label values."""
        counts = self._counts.get(labels)
        if counts is None:
            _check_labels(self._name, self._labels, labels)
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
            self._sums[labels] = 0.0
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def count(self, *labels: str) -> int:
        """Return how many values with these labels were observed."""
        return sum(self._counts.get(labels, ()))

    def collect(self) -> Iterator[Metric]:
        """Yield the histogram's metric family for a scrape; no samples if nothing was observed."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*(f"{bound:.12g}" for bound in self._bounds), "+Inf"]
        for labels, counts in self._counts.items():
            buckets = zip(names, map(float, accumulate(counts)), strict=True)
            family.add_metric(labels, list(buckets), self._sums[labels])
        yield family

    def describe(self) -> Iterator[Metric]:
        """Yield the family without samples, by which the registry refuses a second one."""
        yield HistogramMetricFamily(self._name, self._text, labels=self._labels)


class Registry:
    """Registry that creates a process's metrics and renders them for Prometheus."""

    def __init__(self) -> None:
        self._registry = prometheus_client.CollectorRegistry()

    @property
    def collectors(self) -> prometheus_client.CollectorRegistry:
        """Registry of the library, for its own collectors."""
        return self._registry

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Register a new counter and return it."""
        counter = Counter(name, text, labels)
        self._registry.register(counter)
        return counter

    def gauge(
        self,
        name: str,
        text: str,
        read: Callable[[], Iterable[Sample]],
        labels: Sequence[str] = (),
    ) -> Gauge:
        """Create, register and return a gauge whose values ``read`` returns at each scrape."""
        gauge = Gauge(name, text, read, labels)
        self._registry.register(gauge)
        return gauge

    def histogram(
        self,
        name: str,
        text: str,
        bounds: Sequence[float] = LATENCIES_S,
        labels: Sequence[str] = (),
    ) -> Histogram:
        """Create, register and return a histogram with these bucket bounds."""
        histogram = Histogram(name, text, bounds, labels)
        self._registry.register(histogram)
        return histogram

    def render(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return prometheus_client.generate_latest(self._registry).decode()


def process_registry(service: str, version: str) -> Registry:
    """Return a metrics registry with build info and CPU and memory of this process.

    Args:
        service: name of the service.
        version: of NNI.
    """
    registry = Registry()
    registry.gauge(
        "nni_build_info",
        "Which service and version this is; always 1",
        lambda: [((service, version), 1.0)],
        ("service", "version"),
    )
    registry.collectors.register(_ProcessMetrics())
    return registry


class _ProcessMetrics:
    """Collector of the process's CPU, memory and descriptors, of which documented ones pass."""

    def __init__(self) -> None:
        self._collector = prometheus_client.ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """Yield those of the library's process metrics that NNI documents."""
        for family in self._collector.collect():
            if any(sample.name in _PROCESS_METRICS for sample in family.samples):
                yield family


def totals(counts: Mapping[str, float]) -> list[Sample]:
    """Return one sample for each item: its key as the only label value, and its number."""
    return [((name,), float(count)) for name, count in counts.items()]


def _check_labels(name: str, names: Labels, values: Labels) -> None:
    """Raise ValueError unless a metric has as many label values as names of labels."""
    if len(values) != len(names):
        raise ValueError(f"{name} has the labels {names}, got the values {values}")
