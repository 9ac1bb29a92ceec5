"""Examples of searches, each with fewer trials than in its README, in one process.

One module for all: the libraries that they train with are imported once.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from nni.hpo import TrialRecord
from tests.support.example_searches import ExampleSearch
from tests.support.scripts import ROOT, Scripts, scripts

__all__ = ["scripts"]  # a fixture

EXAMPLES = ROOT / "examples"


def budgets(records: tuple[TrialRecord, ...]) -> list[int]:
    return [record.parameters["TRIAL_BUDGET"] for record in records]


def test_the_batch_ends_after_its_six_configurations() -> None:
    search = ExampleSearch("batch", "accuracies")

    found = search.run(trials=10)

    listed = search.config.search_space["combine_params"]["_value"]
    assert [record.parameters for record in found.trials] == listed
    assert found.best_value > 0.94
    assert found.trials[0].value is not None
    assert found.trials[0].value < 0.5  # a learning rate that is too small for ten epochs


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("config", "largest"), [("config.yml", {"R": 9}), ("bohb.yml", {"max_budget": 9})]
)
def test_most_networks_get_few_epochs(config: str, largest: dict[str, int]) -> None:
    found = ExampleSearch("hyperband", "accuracies", config).run(trials=13, **largest)

    # The first bracket: nine networks, the three best of them, the best.
    assert budgets(found.trials) == [1] * 9 + [3] * 3 + [9]
    assert all(len(one.intermediate) == one.parameters["TRIAL_BUDGET"] for one in found.trials)
    assert found.best_value > 0.94


def test_layers_with_settings_of_their_own_are_chosen() -> None:
    found = ExampleSearch("nested", "accuracies").run(trials=5)

    layers = [one.parameters[f"layer{n}"] for one in found.trials for n in (1, 2, 3)]
    keys = {"none": set(), "conv": {"channels", "kernel"}, "pool": {"kind"}}
    assert all(set(layer) == keys[layer["_name"]] | {"_name"} for layer in layers)
    assert {layer["_name"] for layer in layers} == set(keys)
    assert found.best_value > 0.95


def test_networks_that_fall_behind_are_stopped() -> None:
    found = ExampleSearch("optimizers", "accuracies").run(trials=8)

    assert {one.status for one in found.trials} == {"SUCCEEDED", "EARLY_STOPPED"}
    assert found.best_value > 0.95


def test_every_network_and_optimizer_of_the_space_is_known() -> None:
    search = ExampleSearch("optimizers", "accuracies")
    space = search.config.search_space
    torch = pytest.importorskip("torch")

    networks = [search.trial["build"](name) for name in space["model"]["_value"]]

    outputs = {tuple(network(torch.zeros(2, 1, 8, 8)).shape) for network in networks}
    assert outputs == {(2, 10)}
    assert all(hasattr(torch.optim, name) for name in space["optimizer"]["_value"])


def test_trees_are_better_than_the_mean(scripts: Scripts, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    copy = shutil.copytree(EXAMPLES / "auto-gbdt", tmp_path / "auto-gbdt")

    scripts(copy / "prepare.py")
    found = ExampleSearch(str(copy), "error").run(trials=10)

    assert (copy / "data" / "regression.test").is_file()
    assert found.best_value < 60  # the mean of all patients gives 74.7


def test_the_surrogate_has_the_published_errors() -> None:
    search = ExampleSearch("pix2pix", "error")
    usual = search.trial["USUAL"]
    best = usual | {"ngf": 16, "netD": "pixel", "norm": "none", "init_type": "normal"}
    best |= {"beta1": 0.6954, "lr_policy": "step", "lambda_L1": 500}

    assert search.trial["error"](usual) == pytest.approx(0.4148, abs=5e-5)
    assert search.trial["error"](best) == pytest.approx(0.3317)
    assert set(search.config.search_space) == set(usual)


def test_the_search_beats_the_usual_settings_of_the_gan() -> None:
    search = ExampleSearch("pix2pix", "error")

    found = search.run(trials=40)

    assert found.best_value < search.trial["error"](search.trial["USUAL"])


def test_each_algorithm_beats_the_recommender_without_factors(scripts: Scripts) -> None:
    printed = scripts("recommender/compare.py", "--trials", 5, "--scale", 0.1)

    rows = dict(re.findall(r"^(\w[\w ]*?) +(\d\.\d+)", printed, re.MULTILINE))
    bar = float(rows.pop("biases only"))
    assert set(rows) == {"Anneal", "SMAC", "Random", "TPE", "Metis", "Evolution", "Hyperband"}
    assert all(float(error) < bar for error in rows.values()), printed


def test_only_networks_of_twice_the_cost_are_tried() -> None:
    search = ExampleSearch("scaling", "accuracies")

    found = search.run(trials=150)

    points = [record.parameters for record in found.trials]
    costs = [one["alpha"] * one["beta"] ** 2 * one["gamma"] ** 2 for one in points]
    assert len(points) == 15
    assert all(1.9 <= cost <= 2.1 for cost in costs)
    *_, of_the_small_network = search.trial["accuracies"]({"alpha": 1, "beta": 1, "gamma": 1})
    assert found.best_value > max(0.93, of_the_small_network)


@pytest.mark.parametrize("name", ["batch", "hyperband", "nested", "optimizers", "scaling"])
def test_the_trial_runs_without_an_experiment(name: str, scripts: Scripts) -> None:
    printed = scripts(f"{name}/trial.py")

    assert float(re.findall(r"Final result: (\S+)", printed)[-1]) > 0.9
