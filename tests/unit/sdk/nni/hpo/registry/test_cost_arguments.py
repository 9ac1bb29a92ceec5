"""Arguments of cost-aware search: their check, and errors of tuners without them."""

import pytest

from nni.hpo.registry.cost_arguments import (
    COST_AWARE,
    TUNERS_WITH_COSTS,
    check_cost_arguments,
    cost_hint,
)
from nni.hpo.registry.factory import algorithms, validate


def test_errors_name_the_tuners_that_have_the_argument() -> None:
    declared = {
        entry.name
        for entry in algorithms("tuner")
        if COST_AWARE in {argument.name for argument in entry.arguments}
    }

    assert declared == set(TUNERS_WITH_COSTS)


@pytest.mark.parametrize("tuner", ["TPE", "Random", "SMAC"])
def test_tuner_without_costs_refuses_them_and_names_those_with(tuner: str) -> None:
    with pytest.raises(ValueError, match="cost_aware is an argument of auto and GPTuner: use one"):
        validate("tuner", tuner, {"cost_aware": True})


def test_budget_needs_cost_aware_search() -> None:
    with pytest.raises(ValueError, match="cost_budget must be None unless cost_aware is true"):
        validate("tuner", "auto", {"cost_budget": 60})


@pytest.mark.parametrize("budget", [0, -1, float("inf"), "60"])
def test_budget_is_a_positive_number_of_seconds(budget: object) -> None:
    with pytest.raises(ValueError, match=r"cost_budget must be a number > 0, or None, got"):
        validate("tuner", "auto", {"cost_aware": True, "cost_budget": budget})


def test_confidence_bound_is_not_divided_by_costs() -> None:
    with pytest.raises(
        ValueError, match="utility must be 'ei' or 'poi' with cost_aware, got 'ucb'"
    ):
        validate("tuner", "GPTuner", {"cost_aware": True, "utility": "ucb"})


def test_several_outcomes_are_refused_before_the_experiment_starts() -> None:
    with pytest.raises(ValueError, match="cost_aware must be false with several objectives or"):
        validate("tuner", "auto", {"cost_aware": True}, several_outcomes=True)


def test_arguments_that_fit_together_pass() -> None:
    check_cost_arguments(cost_aware=True, cost_budget=60, utility="poi")
    check_cost_arguments(cost_aware=False, cost_budget=None, utility="ucb")


@pytest.mark.parametrize("argument", ["cost", "utility", ""])
def test_other_arguments_have_no_hint(argument: str) -> None:
    assert cost_hint(argument) == ""
    assert "auto and GPTuner" in cost_hint("cost_budget")


@pytest.mark.parametrize(
    "arguments",
    [
        {"cost_aware": False, "cost_budget": 0},
        {"cost_budget": 60},
        {"cost_aware": True, "utility": "ucb"},
    ],
)
def test_arguments_that_do_not_fit_together_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cost_aware"):
        check_cost_arguments(**arguments)
