"""Several tuners in a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.conversion import config_from_proto, config_to_proto
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete

TWO = [{"name": "TPE", "classArgs": {"optimize_mode": "minimize"}}, {"name": "Random"}]


def refusal(**fields: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        complete(**{"tuner": None, **fields}).validate()
    return str(caught.value)


def test_several_tuners_are_the_tuner_portfolio() -> None:
    config = complete(tuner=None, tuners=TWO, tuner_policy="bandit")
    config.validate()

    tuner = config.given("tuner")

    assert tuner is not None
    assert tuner.to_dict() == {
        "name": "Portfolio",
        "classArgs": {
            "tuners": [{"name": "TPE"}, {"name": "Random"}],
            "policy": "bandit",
            "optimize_mode": "minimize",
        },
    }
    assert config_from_proto(config_to_proto(config)).tuner == tuner


def test_arguments_and_labels_reach_the_tuners() -> None:
    listed = [{"name": "TPE", "classArgs": {"seed": 1}, "label": "a"}, {"name": "TPE"}]

    tuner = complete(tuner=None, tuners=listed).given("tuner")

    assert tuner is not None
    assert tuner.class_args == {
        "tuners": [{"name": "TPE", "classArgs": {"seed": 1}, "label": "a"}, {"name": "TPE"}]
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tuners": TWO, "tuner": {"name": "TPE"}}, "tuners must not be given together with tuner"),
        (
            {"tuners": TWO, "advisor": {"name": "BOHB"}},
            "tuners must not be given together with advisor",
        ),
        ({"tuners": TWO[:1]}, "tuners must have 2 to 20 tuners, got 1"),
        (
            {"tuner": {"name": "TPE"}, "tuner_policy": "equal"},
            "tunerPolicy is only for several tuners, got 'equal' (list several tuners under tuners",
        ),
        (
            {"tuners": [*TWO, {"name": "Anneal", "classArgs": {"optimize_mode": "maximize"}}]},
            "tuners: optimize_mode must be the same for all tuners, got ['minimize', 'maximize']",
        ),
        (
            {"tuners": [{"name": "TPE"}, {"name": "TPX"}]},
            "tuners[1]: tuner name must be one of",
        ),
        ({"tuners": [{"name": "TPE"}, {"nam": "TPE"}]}, "tuners[1].nam is no field here"),
        ({"tuners": TWO, "tuner_policy": "thompson"}, "tunerPolicy must be 'equal' or 'bandit'"),
    ],
)
def test_wrong_lists_are_refused(fields: dict[str, Any], message: str) -> None:
    assert message in refusal(**fields)


def test_objectives_decide_in_place_of_the_modes_of_the_tuners() -> None:
    tuners = [*TWO, {"name": "Anneal", "classArgs": {"optimize_mode": "maximize"}}]

    config = complete(tuner=None, tuners=tuners, objectives=[{"mode": "minimize"}])

    config.validate()

    assert config.given("tuner") is not None
