"""Kill any process at any moment: every trial is there in the end, counted once.

`tests.benchmarks.bench_chaos` is the long version.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos import VICTIMS, Storm, live_through
from tests.support.local_shape import LocalShape


@pytest.mark.timeout(300)
def test_sixty_trials_survive_ten_kills_are_counted_once_and_drawn_again(
    local_shape: LocalShape, tmp_path: Path
) -> None:
    storm = Storm(trials=60, slots=4, kills=10, seed=20261120, timeout_s=240)

    aftermath = live_through(storm, local_shape, tmp_path)

    assert aftermath.faults == []
    assert set(aftermath.killed) == set(VICTIMS)
    assert aftermath.replay.repeatable
    assert aftermath.replay.equal == aftermath.replay.suggestions >= storm.trials
