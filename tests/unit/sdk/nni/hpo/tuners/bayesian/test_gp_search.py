"""Lowering one loss with a Gaussian process over a tree of parameters."""

import json

import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.json_value import JsonValue
from nni.hpo.models.matern import Matern
from nni.hpo.objectives import objectives_of
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.gp_search import ProcessSearch
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings

SPACE = {
    "x": {"_type": "uniform", "_value": [-1, 3]},
    "kind": {"_type": "choice", "_value": ["a", "b", "c"]},
}
SETTINGS = ProcessSettings(
    Matern.of(2.5), alpha=0.0, cold_start=5, most_samples=1000, most_climbs=3, time_limit_s=0.05
)


class Drawn(ProcessSearch):
    """Begins with draws, in spaces of any types."""

    algorithm = "drawn"

    def _cube_of(self, search_space: JsonValue) -> TreeCube:
        return TreeCube(parse_space(search_space))

    def _first_point(self) -> Floats | None:
        return self._drawn() if len(self._losses) < self._first_count() else None

    def _first_count(self) -> int:
        return self._settings.cold_start


def loss(point: dict[str, JsonValue]) -> float:
    return (float(point["x"]) - 1.7) ** 2 + (0.0 if point["kind"] == "b" else 1.0)


def search(space: JsonValue = SPACE) -> Drawn:
    made = Drawn(objectives_of("minimize"), expected_improvement(0.0), SETTINGS, 0)
    made.update_search_space(space)
    return made


def run(made: Drawn, trials: range) -> list[dict[str, JsonValue]]:
    points = []
    for number in trials:
        points.append(made.generate_parameters(number))
        made.receive_trial_result(number, points[-1], loss(points[-1]))
    return points


def test_comes_close_to_the_best_point_of_numbers_and_options() -> None:
    best = min(run(search(), range(30)), key=loss)

    assert best["kind"] == "b"
    assert best["x"] == pytest.approx(1.7, abs=0.01)


def test_goes_on_from_its_state_with_trials_open() -> None:
    first, second = search(), search()
    run(first, range(12))
    open_ones = [first.generate_parameters(number) for number in (12, 13)]

    second.load_state(json.loads(json.dumps(first.state())))

    for made in (first, second):
        for number, point in zip((12, 13), open_ones, strict=True):
            made.receive_trial_result(number, point, loss(point))
    assert run(first, range(14, 20)) == run(second, range(14, 20))


def test_points_at_the_same_time_differ() -> None:
    made = search()
    run(made, range(10))

    together = [made.generate_parameters(number) for number in range(10, 16)]

    assert len({(point["x"], point["kind"]) for point in together}) == 6


def test_a_new_space_begins_anew_with_what_still_lies_in_it() -> None:
    made = search()
    run(made, range(12))
    narrow = {**SPACE, "x": {"_type": "uniform", "_value": [1, 3]}}

    made.update_search_space(narrow)

    kept = made.state()["observed"]
    assert 0 < len(kept) < 12
    assert all(1 <= configuration["x"] <= 3 for configuration, _ in kept)
    assert all(1 <= point["x"] <= 3 for point in run(made, range(12, 20)))
