"""SIGKILL of any process at any moment: every trial is counted exactly once.

`tests.benchmarks.bench_chaos` is the long version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos import VICTIMS, KillPlan, run_under_kills
from tests.support.local_shape import LocalShape


@pytest.mark.timeout(300)
def test_sixty_trials_survive_ten_kills_are_counted_once_and_drawn_again(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    plan = KillPlan(trials=60, slots=4, kills=10, seed=20261120, timeout_s=240)

    outcome = run_under_kills(plan, local_shape, tmp_path)

    assert outcome.violations == []
    assert set(outcome.killed) == set(VICTIMS)
    assert outcome.replay.repeatable
    assert outcome.replay.equal == outcome.replay.suggestions >= plan.trials
