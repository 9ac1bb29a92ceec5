from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from nni.plot.parameters import (
    contour,
    parallel_coordinates,
    parameter_importances,
    rank,
    slices,
)
from nni.plot.trials import PlottedTrial

TRIALS = [
    PlottedTrial(0, {"rate": 1e-4, "model": "mlp", "model/depth": 2}, {"default": 0.3}),
    PlottedTrial(1, {"rate": 1e-1, "model": "linear"}, {"default": 0.2}),
    PlottedTrial(2, {"rate": 1e-2, "model": None}, {"default": 0.1}),
]


def plotly_axes(trials: list[PlottedTrial], **options: Any) -> list[dict[str, Any]]:
    pytest.importorskip("plotly")
    figure = parallel_coordinates(trials, backend="plotly", **options)
    return list(figure.to_dict()["data"][0]["dimensions"])


def test_axes_are_the_parameters_and_the_result() -> None:
    rate, model, depth, result = plotly_axes(TRIALS)

    assert [axis["label"] for axis in (rate, model, depth, result)] == [
        *("rate", "model", "model/depth"),
        "default",
    ]
    assert list(rate["values"]) == pytest.approx([-4, -1, -2])
    assert rate["ticktext"] == ["1e-4", "1e-3", "1e-2", "1e-1"]
    assert model["ticktext"] == ["(none)", "linear", "mlp"]


def test_inactive_parameter_lies_below_the_active_ones() -> None:
    _, _, depth, _ = plotly_axes(TRIALS)

    values = list(depth["values"])
    assert values[0] == 2
    assert all(value < 2 for value in values[1:])
    assert depth["ticktext"][-1] == "(none)"


def test_wanted_parameters_are_the_axes() -> None:
    assert [axis["label"] for axis in plotly_axes(TRIALS, parameters=["model"])] == [
        "model",
        "default",
    ]


def test_unknown_parameter_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"parameters must be of rate, model.* got depth"):
        slices(TRIALS, parameters=["depth"])


def test_slices_have_a_panel_for_each_parameter() -> None:
    figure = slices(TRIALS, backend="matplotlib")

    rate, model, depth = figure.axes[:3]
    assert rate.get_xscale() == "log"
    assert [text.get_text() for text in model.get_xticklabels()] == ["(none)", "linear", "mlp"]
    assert len(depth.collections[0].get_offsets()) == 1


def test_contour_goes_through_the_trials() -> None:
    drawn = random.Random(3)
    points = [(drawn.random(), drawn.random()) for _ in range(60)]
    trials = [
        PlottedTrial(number, {"x": x, "y": y}, {"default": x + y})
        for number, (x, y) in enumerate(points)
    ]
    pytest.importorskip("plotly")

    surface = contour(trials, "x", "y", backend="plotly").to_dict()["data"][0]

    grid = np.array(surface["z"])
    expected = np.add.outer(np.array(surface["y"]), np.array(surface["x"]))
    # Eight of 60 random points are about 0.2 wide: the mean of a plane over them, at its edges.
    assert np.abs(grid - expected).mean() < 0.1


def test_contour_needs_numbers() -> None:
    with pytest.raises(ValueError, match="first and second must be numbers in at least 3 trials"):
        contour(TRIALS, "rate", "model")


@pytest.mark.parametrize("with_space", [True, False])
def test_parameter_that_decides_has_the_longest_bar(*, with_space: bool) -> None:
    drawn = random.Random(0)
    trials = []
    for number in range(60):
        x, y = drawn.random(), drawn.random()
        trials.append(PlottedTrial(number, {"x": x, "y": y}, {"default": x}))
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in ("x", "y")}

    figure = parameter_importances(trials, space if with_space else None, backend="matplotlib")

    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels[-1] == "x"


def test_importance_knows_branches_of_the_space() -> None:
    drawn = random.Random(1)
    space = {
        "model": {
            "_type": "choice",
            "_value": [
                {"_name": "mlp", "depth": {"_type": "uniform", "_value": [0, 1]}},
                {"_name": "linear"},
            ],
        }
    }
    trials = []
    for number in range(40):
        depth = drawn.random()
        branch = {"model": "mlp", "model/depth": depth} if number % 2 else {"model": "linear"}
        value = depth if number % 2 else 5.0
        trials.append(PlottedTrial(number, branch, {"default": value}))

    figure = parameter_importances(trials, space, backend="matplotlib")

    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "model" in labels[-1]


def test_colour_of_a_rank_is_its_place_among_the_results() -> None:
    pytest.importorskip("plotly")
    trials = [
        PlottedTrial(n, {"x": n, "kind": kind}, {"default": value})
        for n, (kind, value) in enumerate([("a", 1e9), ("b", 0.1), ("a", 0.1), ("b", 5.0)])
    ]

    lowest, highest = (
        rank(trials, "x", "kind", optimize_mode=mode, backend="plotly").to_dict()["data"][0]
        for mode in ("minimize", "maximize")
    )

    assert list(lowest["marker"]["color"]) == [3, 1, 1, 2]
    assert list(highest["marker"]["color"]) == [1, 3, 3, 2]


def test_rank_leaves_out_trials_without_both_parameters() -> None:
    with pytest.raises(ValueError, match="first and second must be parameters of a trial"):
        rank(TRIALS, "rate", "other")
