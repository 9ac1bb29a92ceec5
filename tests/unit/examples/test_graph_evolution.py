"""The example's tuner evolves graphs, each of which is a network that learns to find answers."""

import copy
import json
import random
from typing import Any

import pytest

from nni.hpo import Tuner
from nni.hpo.registry.factory import create_custom
from tests.support.example_searches import ExampleSearch
from tests.support.scripts import ROOT, example_module

FOLDER = "graph-evolution"
GRAPHS = example_module(FOLDER, "graphs")
"""Functions that change graphs."""


def make_tuner(**class_args: object) -> Tuner:
    folder = ROOT / "examples" / FOLDER
    tuner = create_custom("tuner", "evolution.GraphEvolution", class_args, folder)
    assert isinstance(tuner, Tuner)
    tuner.update_search_space({})
    return tuner


def grown() -> dict[str, Any]:
    """Return a graph that reads the question, looks for its tokens, and for their run."""
    graph = GRAPHS.smallest()
    GRAPHS.insert(graph, 1, 3, GRAPHS.RNN, [1])
    GRAPHS.insert(graph, 0, 2, GRAPHS.ATTENTION, [0, 4])
    GRAPHS.insert(graph, 5, 2, GRAPHS.RNN, [5])
    GRAPHS.link(graph)
    found: dict[str, Any] = graph
    return found


def test_changes_leave_a_graph_that_can_be_computed() -> None:
    generator = random.Random(0)
    graph = GRAPHS.smallest() | {"max_layer_num": 9}

    for _change in range(300):
        before = copy.deepcopy(graph)
        after = GRAPHS.mutated(graph, generator)
        assert graph == before
        assert after != before
        graph = json.loads(json.dumps(after))

        layers = graph["layers"]
        assert len(layers) <= graph["max_layer_num"]
        live = GRAPHS.live(graph)
        assert sorted(GRAPHS.in_order(graph)) == live
        for number in live:
            one = layers[number]
            sizes = [layers[source]["size"] for source in one["input"]]
            assert len(set(one["input"])) == len(one["input"])
            assert set(one["input"]) <= set(live)
            assert (one["size"] in sizes) == (one["type"] != GRAPHS.INPUT)
            assert len(set(sizes)) == one["input_size"]
            assert one["output"] == [n for n in live if number in layers[n]["input"]]


@pytest.mark.parametrize("name", [change.__name__ for change in GRAPHS.CHANGES])
def test_each_change_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(0)
    graph = grown()
    GRAPHS.add_skip(graph, generator)
    change = next(one for one in GRAPHS.CHANGES if one.__name__ == name)
    monkeypatch.setattr(GRAPHS, "CHANGES", (change,))

    assert GRAPHS.mutated(graph, generator) != graph


def test_circle_of_layers_is_an_error() -> None:
    graph = grown()
    graph["layers"][5]["input"].append(6)

    with pytest.raises(ValueError, match="depend on each other"):
        GRAPHS.in_order(graph)


@pytest.mark.parametrize(("mode", "parent_epochs"), [("maximize", 200), ("minimize", 100)])
def test_better_graph_of_two_has_the_children(mode: str, parent_epochs: int) -> None:
    tuner = make_tuner(optimize_mode=mode, population=2, seed=0)
    tuner.import_data(
        [
            {"parameter": GRAPHS.smallest() | {"epochs": 100}, "value": 0.1},
            {"parameter": GRAPHS.smallest() | {"epochs": 200}, "value": {"default": 0.9}},
        ]
    )

    children = [tuner.generate_parameters(number) for number in range(8)]

    for child in children:
        assert isinstance(child, dict)
        assert child["epochs"] in {
            parent_epochs,
            parent_epochs + 2,
        }  # longer, if that is the change


def test_first_graphs_come_before_children_and_failures_are_forgotten() -> None:
    tuner = make_tuner(population=3, seed=0)

    first = [tuner.generate_parameters(number) for number in range(3)]
    for number, graph in enumerate(first):
        tuner.receive_trial_result(number, graph, float("nan"))
        tuner.trial_end(number, success=True)

    assert first[0] == GRAPHS.smallest()
    assert GRAPHS.smallest() not in first[1:]
    child = tuner.generate_parameters(3)
    assert isinstance(child, dict)
    assert child != GRAPHS.smallest()


@pytest.mark.parametrize(
    ("class_args", "message"),
    [
        ({"optimize_mode": "max"}, "optimize_mode must be maximize or minimize, got 'max'"),
        ({"population": 1}, "population must be >= 2, got 1"),
    ],
)
def test_wrong_argument_is_an_error(class_args: dict[str, object], message: str) -> None:
    with pytest.raises(Exception, match=message):
        make_tuner(**class_args)


def test_search_space_must_be_empty() -> None:
    with pytest.raises(ValueError, match="searchSpace must be empty"):
        make_tuner(seed=0).update_search_space({"x": {"_type": "choice", "_value": [1]}})


def test_network_of_a_grown_graph_finds_more_answers_than_the_smallest() -> None:
    search = ExampleSearch(FOLDER, "accuracies")

    smallest = list(search.trial["accuracies"](GRAPHS.smallest() | {"epochs": 1}))[-1]
    larger = list(search.trial["accuracies"](grown() | {"epochs": 1}))[-1]

    assert larger > smallest + 0.3


def test_every_graph_of_a_search_is_a_network() -> None:
    torch = pytest.importorskip("torch")
    reader = example_module(FOLDER, "reader").Reader
    generator = random.Random(1)
    graph = GRAPHS.smallest()

    for _change in range(30):
        graph = GRAPHS.mutated(graph, generator)
        scores = reader(graph, 8)(torch.ones(2, 5, dtype=int), torch.ones(2, 3, dtype=int))
        assert scores.shape == (2, 5, 2)
