"""Models and spaces of the AutoML benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from nni_benchmark.automl.architectures import ARCHITECTURES


@pytest.mark.parametrize(
    ("depth", "leaves", "expected"), [(0, 0, (None, None)), (4, 1, (4, 2)), (8, 9, (8, 9))]
)
def test_bounds_of_trees_that_scikit_learn_refuses_are_mapped(
    depth: int, leaves: int, expected: tuple[int | None, int | None]
) -> None:
    parameters = {
        "n_estimators": 4,
        "max_depth": depth,
        "max_leaf_nodes": leaves,
        "min_samples_leaf": 1,
        "min_samples_split": 2,
    }

    model = ARCHITECTURES["random_forest"].model(parameters, False, 0)

    assert (model.max_depth, model.max_leaf_nodes) == expected


def test_layers_are_a_list_or_a_place_in_the_list_of_lists() -> None:
    parameters: dict[str, Any] = {
        "learning_rate_init": 0.1,
        "alpha": 0.1,
        "momentum": 0.5,
        "beta_1": 1.0,
        "tol": 0.1,
        "max_iter": 2,
    }

    models = [
        ARCHITECTURES["mlp"].model({**parameters, "hidden_layer_sizes": sizes}, False, 0)[-1]
        for sizes in ([16, 16], 4)
    ]

    assert models[0].hidden_layer_sizes == models[1].hidden_layer_sizes == (16, 16)
    assert models[0].beta_1 < 1


def test_part_of_a_budget_is_that_part_of_the_training() -> None:
    forest, network = ARCHITECTURES["random_forest"], ARCHITECTURES["mlp"]

    assert forest.cheaper({"n_estimators": 270}, 1 / 27) == {"n_estimators": 10}
    assert forest.cheaper({"n_estimators": 10}, 1 / 27) == {"n_estimators": 4}
    assert network.cheaper({"max_iter": 99, "tol": 0.1}, 1.0) == {"max_iter": 99, "tol": 0.1}
