"""The example's tuners keep the products, propose nothing twice, and beat random points."""

import json
import math

import pytest

from nni.errors import NoMoreTrialError
from nni.hpo import Tuner
from nni.hpo.registry.factory import create_custom
from tests.support.example_searches import ExampleSearch
from tests.support.scripts import ROOT

FOLDER = "tile-factors"


@pytest.mark.parametrize("config", ["config.yml", "gbfs.yml"])
def test_search_finds_tiles_that_fit_the_caches(config: str) -> None:
    search = ExampleSearch(FOLDER, "evaluate", config)

    found = search.run(trials=120)

    products = {name: spec["_value"][0] for name, spec in search.config.search_space.items()}
    for record in found.trials:
        assert {name: math.prod(one) for name, one in record.parameters.items()} == products
    points = {json.dumps(record.parameters, sort_keys=True) for record in found.trials}
    assert len(points) == 120
    assert found.best_value < 0.94  # one point in a hundred is as good


@pytest.mark.parametrize("name", ["OpEvo", "GBFS"])
def test_exhausted_space_ends_the_search(name: str) -> None:
    tuner = create_custom("tuner", f"tuners.{name}", {"seed": 0}, ROOT / "examples" / FOLDER)
    assert isinstance(tuner, Tuner)
    tuner.update_search_space({"rows": {"_type": "factor", "_value": [4, 2]}})

    found = []
    for number in range(3):
        found.append(tuner.generate_parameters(number))
        tuner.receive_trial_result(number, found[-1], float(number))
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(3)

    assert sorted(one["rows"] for one in found) == [[1, 4], [2, 2], [4, 1]]


def test_product_can_be_timed() -> None:
    trial = ExampleSearch(FOLDER, "evaluate").trial

    assert trial["measured"](**trial["ALONE"]) > 0
