"""Both selectors are estimators of scikit-learn and keep the contract of `FeatureSelector`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from nni.feature_engineering import FeatureGradientSelector, GBDTSelector

TREES = {"num_threads": 1, "max_bin": 15, "min_data_in_leaf": 2}


def trees(objective: str) -> GBDTSelector:
    return GBDTSelector({"objective": objective, **TREES}, 0.2, 3, "gain", 5, random_state=0)


SELECTORS = {
    "gradient": FeatureGradientSelector(n_features=2, random_state=0),
    "trees": trees("binary").set_params(topk=2),
}
CHECKED = {
    "gradient": FeatureGradientSelector(random_state=0),
    "trees, classes": trees("binary"),
    "trees, numbers": trees("regression"),
}
NEEDS_ANOTHER_ENVIRONMENT = "check_array_api_input"
CHECKS = [
    pytest.param(estimator, check, id=f"{name}, {check.func.__name__}")
    for name, selector in CHECKED.items()
    for estimator, check in estimator_checks_generator(selector, mark=None)
    if check.func.__name__ != NEEDS_ANOTHER_ENVIRONMENT
]


@pytest.fixture(params=list(SELECTORS))
def selector(request: pytest.FixtureRequest) -> Any:
    return clone(SELECTORS[request.param])


def data() -> tuple[Any, Any]:
    table = np.random.default_rng(0).normal(size=(200, 6))
    return table, 2 * table[:, 4] + table[:, 1] > 0


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_selector_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    assert check(estimator) is None  # it raises otherwise


def test_fit_returns_the_selector_and_positions_are_unique_ints(selector: Any) -> None:
    assert selector.fit(*data()) is selector

    found = selector.get_selected_features()

    assert found == [4, 1]
    assert {type(column) for column in found} == {int}


def test_mask_positions_and_columns_agree(selector: Any) -> None:
    table, target = data()
    selector.fit(table, target)
    positions = sorted(selector.get_selected_features())

    assert selector.get_support(indices=True).tolist() == positions
    assert np.flatnonzero(selector.get_support()).tolist() == positions
    assert selector.transform(table).tolist() == table[:, positions].tolist()


def test_dropped_columns_are_zero_in_the_inverse(selector: Any) -> None:
    table, target = data()

    found = selector.inverse_transform(selector.fit_transform(table, target))

    assert found.shape == table.shape
    assert found[:, [1, 4]].tolist() == table[:, [1, 4]].tolist()
    assert not found[:, [0, 2, 3, 5]].any()


def test_sparse_tables_stay_sparse(selector: Any) -> None:
    table, target = data()

    found = selector.fit_transform(sparse.csr_matrix(table), target)

    assert sparse.issparse(found)
    assert found.toarray().tolist() == table[:, [1, 4]].tolist()


def test_names_of_the_columns_are_kept(selector: Any) -> None:
    pandas = pytest.importorskip("pandas")
    table, target = data()
    frame = pandas.DataFrame(table, columns=list("abcdef"))

    selector.fit(frame, target)

    assert selector.feature_names_in_.tolist() == list("abcdef")
    assert selector.get_feature_names_out().tolist() == ["b", "e"]
    assert selector.get_selected_features() == [4, 1]


def test_selector_is_the_first_step_of_a_pipeline(selector: Any) -> None:
    table, target = data()
    pipeline = make_pipeline(selector, LogisticRegression()).fit(table, target)

    # A linear boundary of two of the columns, which are both kept.
    assert pipeline.score(table, target) > 0.9


def test_a_parameter_is_searched_by_cross_validation() -> None:
    table, target = data()
    name, values = "featuregradientselector__n_features", [1, 6]
    pipeline = make_pipeline(clone(SELECTORS["gradient"]), LogisticRegression())

    search = GridSearchCV(pipeline, {name: values}, cv=2).fit(table, target)

    assert search.best_params_[name] == 6  # column 1 is missing from one column


def test_a_copy_has_the_arguments_and_nothing_learned(selector: Any) -> None:
    copied = clone(selector.fit(*data()))

    assert copied.get_params() == selector.get_params()
    with pytest.raises(NotFittedError):
        copied.get_selected_features()


def test_an_unknown_parameter_is_refused(selector: Any) -> None:
    with pytest.raises(ValueError, match="Invalid parameter"):
        selector.set_params(colour=1)


def test_a_fitted_selector_is_pickled(selector: Any) -> None:
    selector.fit(*data())

    loaded = pickle.loads(pickle.dumps(selector))

    assert loaded.get_selected_features() == selector.get_selected_features()
