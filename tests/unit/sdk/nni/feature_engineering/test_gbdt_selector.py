"""Selection by the importance in boosted trees."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from nni.feature_engineering import GBDTSelector

FAST = {"num_threads": 1, "max_bin": 31, "num_leaves": 15, "learning_rate": 0.2}
"""Parameters of small models that are trained the same way on every machine."""


def arguments(**changes: Any) -> dict[str, Any]:
    return {
        "lgb_params": {"objective": "regression", **FAST},
        "eval_ratio": 0.2,
        "early_stopping_rounds": 5,
        "importance_type": "gain",
        "num_boost_round": 30,
        **changes,
    }


def small() -> tuple[Any, Any]:
    table = np.random.default_rng(1).normal(size=(300, 8))
    table[:, 7] = 0.0
    return table, 3 * table[:, 2] - table[:, 5]


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_informative_columns_are_recovered_and_serve_a_linear_model(seed: int) -> None:
    table, target = make_classification(
        2000, 500, n_informative=20, n_redundant=0, class_sep=2.0, shuffle=False, random_state=seed
    )
    selector = GBDTSelector(topk=20, random_state=0)

    selector.fit(
        table,
        target,
        **arguments(lgb_params={"objective": "binary", **FAST}, num_boost_round=100),
    )
    kept = selector.transform(table)

    # The bars of the specification. Here 19 or 20 are found, and the accuracy is 0.96 or above.
    assert sum(column < 20 for column in selector.get_selected_features(20)) >= 18
    assert cross_val_score(LogisticRegression(), kept, target).mean() >= 0.94


@pytest.mark.parametrize("importance_type", ["split", "gain"])
def test_columns_are_ranked_by_importance(importance_type: str) -> None:
    selector = GBDTSelector(random_state=0)

    selector.fit(*small(), **arguments(importance_type=importance_type))

    assert selector.get_selected_features(topk=2) == [2, 5]
    assert selector.feature_importances_[2] > selector.feature_importances_[5] > 0
    assert selector.feature_importances_.shape == (8,)


def test_columns_without_importance_come_last_by_position() -> None:
    selector = GBDTSelector(random_state=0).fit(*small(), **arguments(num_boost_round=1))
    unused = [int(column) for column in np.flatnonzero(selector.feature_importances_ == 0)]

    found = selector.get_selected_features(topk=8)

    assert 7 in unused
    assert found[-len(unused) :] == unused
    assert len(selector.get_selected_features()) == 8 - len(unused)


def test_more_columns_than_there_are_are_all_with_a_warning() -> None:
    selector = GBDTSelector(random_state=0).fit(*small(), **arguments())

    with pytest.warns(UserWarning, match="topk is 9, but there are 8 columns"):
        found = selector.get_selected_features(topk=9)

    assert sorted(found) == list(range(8))


def test_arguments_of_the_constructor_are_those_of_fit() -> None:
    early = GBDTSelector(**arguments(), topk=2, random_state=0).fit(*small())
    late = GBDTSelector(random_state=0).fit(*small(), **arguments())

    assert early.feature_importances_.tolist() == late.feature_importances_.tolist()
    assert early.transform(small()[0]).shape == (300, 2)


def test_classes_of_any_labels_are_trained() -> None:
    table, numbers = small()
    target = np.array(["low", "middle", "high"])[np.digitize(numbers, [-2, 2])]
    parameters = {"objective": "multiclass", **FAST}

    selector = GBDTSelector(random_state=0).fit(table, target, **arguments(lgb_params=parameters))

    assert selector.get_selected_features(topk=1) == [2]
    assert parameters == {"objective": "multiclass", **FAST}


@pytest.mark.parametrize("objective", ["cross_entropy", "xentlambda"])
def test_probabilities_are_labels_of_a_cross_entropy(objective: str) -> None:
    table, numbers = small()
    parameters = {"objective": objective, **FAST}

    selector = GBDTSelector(random_state=0).fit(
        table, 1 / (1 + np.exp(-numbers)), **arguments(lgb_params=parameters)
    )

    assert selector.get_selected_features(topk=1) == [2]


def test_a_class_with_one_row_is_trained() -> None:
    table, _ = small()
    target = np.array([1] + [0] * 299)

    selector = GBDTSelector(random_state=0).fit(
        table, target, **arguments(lgb_params={"objective": "binary", **FAST})
    )

    assert len(selector.get_selected_features(topk=8)) == 8


@pytest.mark.parametrize("name", list(arguments()))
def test_a_missing_argument_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is required"):
        GBDTSelector().fit(*small(), **arguments(**{name: None}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eval_ratio": 0.0}, "eval_ratio must be between 0 and 1"),
        ({"eval_ratio": 1}, "eval_ratio must be between 0 and 1"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds must be >= 1"),
        ({"num_boost_round": 0}, "num_boost_round must be >= 1"),
        ({"importance_type": "cover"}, "importance_type must be one of split, gain"),
    ],
)
def test_an_argument_outside_its_range_is_refused(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GBDTSelector().fit(*small(), **arguments(**change))


def test_parameters_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError, match="lgb_params must be a dict"):
        GBDTSelector().fit(*small(), **arguments(lgb_params="objective=binary"))


def test_fewer_than_two_classes_are_refused() -> None:
    table, _ = small()

    with pytest.raises(ValueError, match="at least two classes"):
        GBDTSelector().fit(
            table, np.ones(300), **arguments(lgb_params={"objective": "binary", **FAST})
        )


def test_a_number_of_columns_below_one_is_refused() -> None:
    selector = GBDTSelector(random_state=0).fit(*small(), **arguments())

    with pytest.raises(ValueError, match="topk must be >= 1"):
        selector.get_selected_features(topk=0)


def test_nothing_is_selected_before_fit() -> None:
    with pytest.raises(NotFittedError):
        GBDTSelector().get_selected_features(3)


def test_training_data_are_not_kept() -> None:
    selector = GBDTSelector(random_state=0).fit(*small(), **arguments())

    assert max(np.size(value) for value in vars(selector).values()) == 8


def test_missing_openmp_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "lightgbm.py").write_text("raise OSError('libgomp.so.1: cannot open')")
    monkeypatch.delitem(sys.modules, "lightgbm", raising=False)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ImportError, match=r"libgomp1 of Debian, or `brew install libomp`"):
        GBDTSelector().fit(*small(), **arguments())
