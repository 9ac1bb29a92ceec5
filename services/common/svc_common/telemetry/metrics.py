"""Figures of a process in the text format of Prometheus, without a library.

The usual client library costs every service 30 ms and 3 MB at its start, for locks and exporters
that a process with one loop does not need; a test reads what is written here with that library.

Instruments belong to a `Registry`, which the composition root makes and whoever serves `/metrics`
renders. They are used from one thread. Names follow the conventions: base units, `_total` for
counters; labels have few values, never an id of an experiment or a trial.
"""

import math
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LATENCIES_S: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
)  # fmt: skip
"""Upper bounds for what should take milliseconds and must not take minutes."""
DURATIONS_S: Final = (
    0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0,
)  # fmt: skip
"""Upper bounds for the lives of trials."""

Labels: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[Labels, float]
"""Values of the labels, and the figure."""


class Instrument(Protocol):
    """What a registry renders."""

    def lines(self) -> Iterator[str]:
        """Give its lines of text."""
        ...


class Counter:
    """A figure that only grows.

    Args:
        name: ends in `_total`.
        text: what it counts.
        labels: names of its labels.
    """

    def __init__(self, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self._head = _head(name, text, "counter")
        self._name = name
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Add ``by``, which is not negative, to the figure with these labels."""
        self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """Return the figure with these labels."""
        return self._values.get(labels, 0.0)

    def lines(self) -> Iterator[str]:
        """See `Instrument.lines`."""
        yield from self._head
        for labels, value in self._values.items():
            yield _line(self._name, self._labels, labels, value)


class Gauge:
    """Figures that are looked up when somebody asks.

    Args:
        name: with its unit.
        text: what it tells.
        read: gives the figures now; one whose state vanished is simply not among them.
        labels: names of its labels.
    """

    def __init__(
        self,
        name: str,
        text: str,
        read: Callable[[], Iterable[Sample]],
        labels: Sequence[str] = (),
    ) -> None:
        self._head = _head(name, text, "gauge")
        self._name = name
        self._labels = tuple(labels)
        self._read = read

    def lines(self) -> Iterator[str]:
        """See `Instrument.lines`."""
        yield from self._head
        for labels, value in self._read():
            yield _line(self._name, self._labels, labels, value)


class Histogram:
    """How figures are spread.

    Args:
        name: with its unit.
        text: what is observed.
        bounds: upper bounds of its buckets, rising.
        labels: names of its labels.
    """

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float] = LATENCIES_S,
        labels: Sequence[str] = (),
    ) -> None:
        self._head = _head(name, text, "histogram")
        self._name = name
        self._bounds = tuple(bounds)
        self._labels = tuple(labels)
        self._series: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count a figure."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = ([0] * (len(self._bounds) + 1), [0.0])
        counts, total = series
        counts[bisect_left(self._bounds, value)] += 1
        total[0] += value

    def count(self, *labels: str) -> int:
        """Return how many figures were counted."""
        series = self._series.get(labels)
        return 0 if series is None else sum(series[0])

    def lines(self) -> Iterator[str]:
        """See `Instrument.lines`."""
        yield from self._head
        names = (*self._labels, "le")
        for labels, (counts, total) in self._series.items():
            below = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                below += count
                yield _line(f"{self._name}_bucket", names, (*labels, _number(bound)), below)
            yield _line(f"{self._name}_sum", self._labels, labels, total[0])
            yield _line(f"{self._name}_count", self._labels, labels, below)


class Registry:
    """The instruments of one process."""

    def __init__(self) -> None:
        self._instruments: list[Instrument] = []

    def add(self, instrument: Instrument) -> None:
        """Keep an instrument."""
        self._instruments.append(instrument)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Make and keep a counter."""
        made = Counter(name, text, labels)
        self.add(made)
        return made

    def gauge(
        self,
        name: str,
        text: str,
        read: Callable[[], Iterable[Sample]],
        labels: Sequence[str] = (),
    ) -> Gauge:
        """Make and keep a gauge."""
        made = Gauge(name, text, read, labels)
        self.add(made)
        return made

    def histogram(
        self,
        name: str,
        text: str,
        bounds: Sequence[float] = LATENCIES_S,
        labels: Sequence[str] = (),
    ) -> Histogram:
        """Make and keep a histogram."""
        made = Histogram(name, text, bounds, labels)
        self.add(made)
        return made

    def render(self) -> str:
        """Return everything in the text format of Prometheus."""
        lines = [line for instrument in self._instruments for line in instrument.lines()]
        return "\n".join(lines) + "\n"


def process_registry(service: str, version: str) -> Registry:
    """Return a registry that tells of this process itself.

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
    for name, text, read in (
        ("process_cpu_seconds_total", "CPU time used", time.process_time),
        ("process_resident_memory_bytes", "Memory in use", _resident_bytes),
        ("process_open_fds", "Open file descriptors", _open_descriptors),
        ("process_start_time_seconds", "When it started, since 1970", _constantly(time.time())),
    ):
        kind = "counter" if name.endswith("_total") else "gauge"
        registry.add(_Figure(name, text, kind, read))
    return registry


class _Figure:
    """One figure of the operating system, looked up when somebody asks."""

    def __init__(self, name: str, text: str, kind: str, read: Callable[[], float]) -> None:
        self._head = _head(name, text, kind)
        self._name = name
        self._read = read

    def lines(self) -> Iterator[str]:
        """See `Instrument.lines`."""
        yield from self._head
        yield _line(self._name, (), (), self._read())


def _constantly(value: float) -> Callable[[], float]:
    return lambda: value


def _resident_bytes() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _open_descriptors() -> float:
    return float(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - only the number of them


def _head(name: str, text: str, kind: str) -> tuple[str, str]:
    plain = text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {plain}", f"# TYPE {name} {kind}"


def _line(name: str, names: Sequence[str], values: Sequence[str], value: float) -> str:
    if not names:
        return f"{name} {_number(value)}"
    pairs = ",".join(
        f'{label}="{_escaped(text)}"' for label, text in zip(names, values, strict=True)
    )
    return f"{name}{{{pairs}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(value)


def totals(counts: Mapping[str, float]) -> list[Sample]:
    """Return samples with one label from figures by its value."""
    return [((name,), float(count)) for name, count in counts.items()]
