"""The way of `auto` with one loss."""

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of
from nni.hpo.tuners._blended_search import BlendedSearch

NUMBER = {"_type": "uniform", "_value": [-1, 3]}
KIND = {"_type": "choice", "_value": ["a", "b", "c"]}


def search(space: JsonValue, mode: str = "minimize") -> BlendedSearch:
    made = BlendedSearch(objectives_of(mode), 0, 0.05)
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
