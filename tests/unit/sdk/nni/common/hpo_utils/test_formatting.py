"""Search spaces and configurations in flat form."""

import math
from random import Random
from typing import Any

import pytest

from nni.common.hpo_utils import (
    deformat_parameters,
    format_parameters,
    format_search_space,
)
from nni.hpo.domains import same_value
from nni.hpo.space import parse_space

SPACE: dict[str, Any] = {
    "choice": {"_type": "choice", "_value": [1, "two", None, True, [3, 4]]},
    "randint": {"_type": "randint", "_value": [-3, 9]},
    "uniform": {"_type": "uniform", "_value": [-1, 1]},
    "quniform": {"_type": "quniform", "_value": [0, 10, 2.5]},
    "loguniform": {"_type": "loguniform", "_value": [1e-5, 10]},
    "qloguniform": {"_type": "qloguniform", "_value": [0.1, 100, 1]},
    "normal": {"_type": "normal", "_value": [5, 2]},
    "qnormal": {"_type": "qnormal", "_value": [0, 3, 0.5]},
    "lognormal": {"_type": "lognormal", "_value": [0, 1]},
    "qlognormal": {"_type": "qlognormal", "_value": [0, 1, 0.5]},
    "model": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "linear", "lr": {"_type": "loguniform", "_value": [1e-4, 1]}},
            {
                "_name": "deep",
                "lr": {"_type": "uniform", "_value": [0, 1]},
                "act": {
                    "_type": "choice",
                    "_value": [
                        "relu",
                        {"_name": "leaky", "slope": {"_type": "uniform", "_value": [0, 0.3]}},
                    ],
                },
            },
        ],
    },
}


@pytest.mark.parametrize("seed", range(30))
def test_there_and_back_is_the_same_configuration(seed: int) -> None:
    formatted_space = format_search_space(SPACE)
    drawn = parse_space(SPACE).draw(Random(seed))

    formatted = format_parameters(drawn, formatted_space)

    assert same_value(deformat_parameters(formatted, formatted_space), drawn)


def test_keys_say_which_option_was_gone_into() -> None:
    keys = list(format_search_space({"model": SPACE["model"]}))

    assert keys == [
        ("model",),
        ("model", 1, "lr"),
        ("model", 2, "lr"),
        ("model", 2, "act"),
        ("model", 2, "act", 1, "slope"),
    ]


def test_only_active_parameters_are_formatted() -> None:
    space = format_search_space({"model": SPACE["model"]})

    formatted = format_parameters({"model": {"_name": "deep", "lr": 0.5, "act": "relu"}}, space)

    assert formatted == {("model",): 2, ("model", 2, "lr"): 0.5, ("model", 2, "act"): 0}
    assert space["model", 2, "lr"].is_activated_in(formatted)
    assert not space["model", 1, "lr"].is_activated_in(formatted)
    assert space[("model",)].is_activated_in({})


def test_specifications_tell_scale_and_bounds() -> None:
    space = format_search_space(SPACE)

    assert (space[("choice",)].categorical, space[("choice",)].size) == (True, 5)
    assert (space[("randint",)].categorical, space[("randint",)].size) == (True, 12)
    log = space[("loguniform",)]
    assert (log.low, log.high, log.clip) == (math.log(1e-5), math.log(10), (1e-5, 10.0))
    assert log.log_distributed
    normal = space[("qnormal",)]
    assert (normal.normal_distributed, normal.mu, normal.sigma, normal.q) == (True, 0, 3, 0.5)
    assert normal.clip is None


def test_deformatted_numbers_are_rounded_and_clipped() -> None:
    space = format_search_space({key: SPACE[key] for key in ("quniform", "uniform", "randint")})
    formatted: dict[tuple[str | int, ...], float] = {
        ("quniform",): 6.0,
        ("uniform",): 7.0,
        ("randint",): 2,
    }

    found = deformat_parameters(formatted, space)

    assert found == {"quniform": 5.0, "uniform": 1.0, "randint": -1}


@pytest.mark.parametrize(
    "parameters", [{}, {"model": {"_name": "other"}}, {"model": {"_name": "linear"}}, {"model": 3}]
)
def test_configurations_outside_the_space_are_refused(parameters: Any) -> None:
    with pytest.raises(ValueError, match="parameter"):
        format_parameters(parameters, format_search_space({"model": SPACE["model"]}))


def test_constraints_are_no_parameters() -> None:
    space = {"x": SPACE["uniform"], "_constraints": ["x < 0.5"]}

    assert list(format_search_space(space)) == [("x",)]
