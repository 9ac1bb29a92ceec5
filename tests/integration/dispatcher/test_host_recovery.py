"""Restart of a host process in an experiment with ten thousand results."""

from pathlib import Path

import pytest

from tests.benchmarks.bench_recovery import CUSTOM, measured
from tests.benchmarks.mixed_space import drawn_points

RESULTS = 10_000
MOST_CPU_S = 5.0
"""Five times the time that `bench_recovery` measures: CPU time, too, is longer on busy machines.
Feeding TPE everything again, with its requests, takes more than ten seconds."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "tuner", [{"name": "TPE"}, {"name": "auto"}, {"class_name": "recovery_tuner.Mine"}]
)
def test_first_new_suggestion_comes_soon(tmp_path: Path, tuner: dict[str, str]) -> None:
    (tmp_path / "recovery_tuner.py").write_text(CUSTOM)

    ((_, cpu_s),) = measured(tuner, drawn_points(RESULTS, seed=0), 1, tmp_path)

    assert cpu_s < MOST_CPU_S
