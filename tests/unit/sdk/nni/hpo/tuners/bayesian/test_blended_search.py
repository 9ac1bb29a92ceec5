"""The way of `auto` with one loss."""

import json

from nni.hpo.json_value import JsonValue
from nni.hpo.models.matern import Matern
from nni.hpo.objectives import objectives_of
from nni.hpo.tuners.bayesian.blended_search import BlendedSearch
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings

NUMBER = {"_type": "uniform", "_value": [-1, 3]}
KIND = {"_type": "choice", "_value": ["a", "b", "c"]}
SETTINGS = ProcessSettings(
    Matern.of(2.5), alpha=0.0, cold_start=1, most_samples=1000, most_climbs=3, time_limit_s=0.05
)


def search(space: JsonValue, mode: str = "minimize") -> BlendedSearch:
    made = BlendedSearch(objectives_of(mode), SETTINGS, 0)
    made.update_search_space(space)
    return made


def test_begins_in_the_middle_of_the_ranges() -> None:
    first = search({"x": NUMBER, "y": NUMBER, "kind": KIND}).generate_parameters(0)

    assert (first["x"], first["y"]) == (1.0, 1.0)


def test_begins_anywhere_where_there_are_branches() -> None:
    branch = {"_type": "choice", "_value": [{"_name": "flat"}, {"_name": "deep", "x": NUMBER}]}

    first = search({"y": NUMBER, "model": branch}).generate_parameters(0)

    assert first["y"] != 1.0


def test_larger_is_better_where_it_maximizes() -> None:
    found = search({"x": NUMBER}, "maximize")
    for number in range(25):
        point = found.generate_parameters(number)
        found.receive_trial_result(number, point, point["x"])

    assert found.generate_parameters(25)["x"] > 1.0
    assert any(configuration["x"] > 2.99 for configuration, _ in found.state()["observed"])


def test_report_without_a_number_teaches_nothing() -> None:
    found = search({"x": NUMBER})
    point = found.generate_parameters(0)

    found.receive_trial_result(0, point, {"accuracy": 1.0})

    assert found.state()["observed"] == []
    assert found.state()["running"] == []


def test_says_what_it_found_out_about_the_loss() -> None:
    found = search({"x": NUMBER, "y": NUMBER})
    for number in range(30):
        point = found.generate_parameters(number)
        found.receive_trial_result(number, point, (int(3 * point["x"]) - 2) ** 2)

    assert "plateau" in found.explanation


def test_goes_on_from_its_state_though_results_are_equal() -> None:
    first, second = search({"x": NUMBER, "y": NUMBER}), search({"x": NUMBER, "y": NUMBER})
    for number in range(25):
        point = first.generate_parameters(number)
        first.receive_trial_result(number, point, (int(3 * point["x"]) - 2) ** 2)

    second.load_state(json.loads(json.dumps(first.state())))

    assert "plateau" in first.explanation
    for number in range(25, 30):
        point = first.generate_parameters(number)
        assert second.generate_parameters(number) == point
        first.receive_trial_result(number, point, (int(3 * point["x"]) - 2) ** 2)
        second.receive_trial_result(number, point, (int(3 * point["x"]) - 2) ** 2)
