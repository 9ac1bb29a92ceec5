from __future__ import annotations

import random

import pytest

from nni.plot import PlottedTrial, improvement


def trials(count: int, sign: int = 1) -> list[PlottedTrial]:
    drawn = random.Random(0)
    points = [drawn.random() for _ in range(count)]
    return [PlottedTrial(n, {"x": x}, {"default": sign * x**2}) for n, x in enumerate(points)]


def line(found: list[PlottedTrial], **options: object) -> tuple[list[int], list[float]]:
    pytest.importorskip("plotly")
    figure = improvement(found, backend="plotly", **options)  # type: ignore[arg-type]  # options of a test
    (mark,) = figure.to_dict()["data"]
    return list(mark["x"]), list(mark["y"])


def test_bound_falls_as_the_search_goes_on() -> None:
    counts, bounds = line(trials(30))

    assert counts[0] == 5
    assert counts[-1] == 30
    assert 0 <= bounds[-1] < bounds[0]


def test_direction_only_mirrors_the_results() -> None:
    assert line(trials(12)) == line(trials(12, sign=-1), optimize_mode="maximize")


def test_declared_space_has_branches() -> None:
    space = {
        "model": {
            "_type": "choice",
            "_value": [
                {"_name": "mlp", "depth": {"_type": "randint", "_value": [1, 9]}},
                {"_name": "linear"},
            ],
        }
    }
    given = [{"model": "mlp", "model/depth": n} for n in range(1, 5)] + [{"model": "linear"}] * 2
    found = [PlottedTrial(n, one, {"default": float(n)}) for n, one in enumerate(given)]

    counts, _ = line(found, search_space=space)

    assert counts == [5, 6]


def test_few_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="source must have at least 5 trials with 'default'"):
        improvement(trials(4))
