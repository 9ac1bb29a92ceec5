"""Figures of speed for `bench_hpo`: what an ask costs, and how soon a host suggests again."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import bench_model_tuners, bench_recovery, bench_tpe_latency
from tests.benchmarks.figures import Figure, at_most
from tests.benchmarks.mixed_space import drawn_points, value_of

TPE_LIMITS_MS = {1_000: 3.0, 10_000: 4.0, 100_000: 6.0}
GP_LIMITS_MS = {100: 100.0, 1_000: 150.0}
RECOVERY_LIMIT_S = 1.0
RECOVERED = 10_000
RECOVERIES = 3
SEED = 0


def speed_figures() -> Iterator[Figure]:
    """Yield the figures; CPU time of asks with the threads that the caller allows."""
    points = drawn_points(max(TPE_LIMITS_MS), SEED)
    for size, limit in TPE_LIMITS_MS.items():
        asks, _ = bench_tpe_latency.ours([(point, value_of(point)) for point in points[:size]])
        yield at_most(f"ask, TPE, {size} results", statistics.median(asks), limit, " ms CPU")
    yield from _recoveries(points[:RECOVERED])
    for size, limit in GP_LIMITS_MS.items():
        asks = bench_model_tuners.asks("GPTuner", size)
        yield at_most(f"ask, GPTuner, {size} results", statistics.median(asks), limit, " ms CPU")


def _recoveries(points: list[dict[str, object]]) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        for tuner in ("TPE", "auto"):
            found = bench_recovery.measured({"name": tuner}, points, RECOVERIES, Path(name))
            waited_s = statistics.median(seconds for seconds, _ in found)
            cpu_s = statistics.median(cpu for _, cpu in found)
            yield at_most(
                f"host start to suggestion, {tuner}, {len(points)} results",
                waited_s,
                RECOVERY_LIMIT_S,
                " s",
                f"{cpu_s:.2f} s CPU",
            )
