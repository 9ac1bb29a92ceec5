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
from nni.hpo.space.domains import same_value
from nni.hpo.space.parser import parse_space
from tests.support.search_spaces import EACH_TYPE, SHARED_NAMES

SPACE: dict[str, Any] = {**EACH_TYPE, "model": SHARED_NAMES}


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

    assert (space[("choice",)].categorical, space[("choice",)].size) == (True, 6)
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
