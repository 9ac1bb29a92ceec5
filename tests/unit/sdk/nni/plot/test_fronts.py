from __future__ import annotations

import random

import numpy as np
import pytest
from matplotlib.figure import Figure

from nni.plot.fronts import areas, hypervolume, pareto_front
from nni.plot.trials import PlottedTrial
from nni_benchmark.problem import hypervolume as reference_hypervolume

OBJECTIVES = {"loss": "minimize", "accuracy": "maximize"}
TRIALS = [
    PlottedTrial(0, {"x": 0}, {"loss": 1.0, "accuracy": 0.5}),
    PlottedTrial(1, {"x": 1}, {"loss": 2.0, "accuracy": 0.9}),
    PlottedTrial(2, {"x": 2}, {"loss": 3.0, "accuracy": 0.8}),
    PlottedTrial(3, {"x": 3}, {"loss": 3.0}),
]


@pytest.mark.parametrize("seed", range(20))
def test_areas_are_those_of_the_whole_front(seed: int) -> None:
    drawn = random.Random(seed)
    # Small integers: equal and dominated points, and some beyond the corner.
    losses = [(float(drawn.randint(0, 7)), float(drawn.randint(0, 7))) for _ in range(25)]
    corner = (6.0, 6.0)

    found = areas(losses, corner)

    expected = [reference_hypervolume(losses[: count + 1], corner) for count in range(len(losses))]
    assert found == pytest.approx(expected)


def test_front_has_the_trials_that_none_dominates() -> None:
    figure = pareto_front(TRIALS, OBJECTIVES, backend="matplotlib")

    assert isinstance(figure, Figure)
    assert figure.get_suptitle() == "Pareto front: 2 of 3 trials"
    dominated, front = figure.axes[0].collections
    assert np.asarray(dominated.get_offsets()).tolist() == [[3.0, 0.8]]
    assert np.asarray(front.get_offsets()).tolist() == [[1.0, 0.5], [2.0, 0.9]]


def test_hypervolume_grows_to_the_area_of_the_front() -> None:
    figure = hypervolume(
        TRIALS, OBJECTIVES, reference={"loss": 4.0, "accuracy": 0.0}, backend="matplotlib"
    )

    (line,) = figure.axes[0].lines
    # 3 x 0.5, and 2 x 0.4 on top of it from the second trial on.
    assert line.get_ydata().tolist() == pytest.approx([1.5, 2.3, 2.3])


def test_one_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="objectives must be 2 metrics, got 1"):
        pareto_front(TRIALS, {"loss": "minimize"})


def test_reference_needs_both_values() -> None:
    with pytest.raises(ValueError, match="reference must have a value of accuracy"):
        hypervolume(TRIALS, OBJECTIVES, reference={"loss": 4.0})


def test_unreported_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="no trial has reported both 'loss' and 'size'"):
        hypervolume(TRIALS, {"loss": "minimize", "size": "minimize"})
