"""Trainings for the surrogate."""

from __future__ import annotations

from pathlib import Path

import nni_benchmark
from nni_benchmark.nas.trained_cells import (
    REPEATED,
    TRAINED,
    main,
    read_trained,
    wanted_trainings,
)

COMMITTED = Path(nni_benchmark.__file__).parent / "data" / "nas-trained-cells.json"


def test_wanted_trainings_are_of_distinct_cells_and_repeat_some() -> None:
    wanted = wanted_trainings()

    assert len(set(wanted)) == len(wanted) == TRAINED + REPEATED
    assert len({number for number, seed in wanted if seed == 0}) == TRAINED >= 200


def test_committed_trainings_are_the_wanted_ones() -> None:
    trained = read_trained(COMMITTED)

    assert [(one.number, one.seed) for one in trained] == wanted_trainings()
    assert all(0 <= one.valid_acc <= 100 for one in trained)


def test_interrupted_trainings_are_continued(tmp_path: Path) -> None:
    file = tmp_path / "trained.json"

    stopped = main([str(file), "--limit", "1", "--seconds", "-1"])
    first = main([str(file), "--limit", "1"])
    again = main([str(file), "--limit", "1"])

    assert (stopped, first, again) == (1, 0, 0)
    committed = read_trained(COMMITTED)[0]
    (trained,) = read_trained(file)
    assert (trained.number, trained.seed) == (committed.number, committed.seed)
    # Rounding differs between processors; the training is the same one.
    assert abs(trained.valid_acc - committed.valid_acc) < 10
