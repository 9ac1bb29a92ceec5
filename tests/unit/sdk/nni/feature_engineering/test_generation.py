"""Features that are generated from a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nni.feature_engineering import (
    FeatureGenerator,
    GBDTSelector,
    GeneratedFeature,
    candidate_features,
)

TABLE = {
    "city": ["Rome", "Oslo", "Rome", "Rome"],
    "kind": ["x", "x", "y", "x"],
    "price": [1.0, 5.0, 3.0, 8.0],
}
UNSEEN = {"city": ["Oslo", "Lima"], "kind": ["x", "x"], "price": [0.0, 9.0]}


def generated(*features: Any, table: Any = TABLE, target: Any = None) -> list[list[float]]:
    generator = FeatureGenerator([GeneratedFeature(*one) for one in features], buckets=2)
    generator.fit(TABLE, target)
    found: list[list[float]] = generator.transform(table).tolist()
    return found


@pytest.mark.parametrize(
    ("feature", "expected", "unseen"),
    [
        (("count", ("city",)), [3, 1, 3, 3], [1, 0]),
        (("crosscount", ("city", "kind")), [2, 1, 1, 2], [1, 0]),
        (("aggregate", ("price", "city"), "max"), [8, 5, 8, 8], [5, 8]),
        (("nunique", ("kind", "city")), [2, 1, 2, 2], [1, 0]),
        # The median is 4: the buckets are 1 and 3, 5 and 8.
        (("histstat", ("price",), "mean"), [2, 6.5, 2, 6.5], [2, 6.5]),
    ],
)
def test_operation_encodes_training_and_other_rows(
    feature: Any, expected: list[float], unseen: list[float]
) -> None:
    assert np.ravel(generated(feature)).tolist() == expected
    assert np.ravel(generated(feature, table=UNSEEN)).tolist() == unseen


def test_other_tables_are_encoded_by_the_targets_of_all_training_rows() -> None:
    found = generated(("target", ("city",)), table=UNSEEN, target=[0, 1, 1, 1])

    assert np.ravel(found).tolist() == pytest.approx([1, 0.75])


def test_the_target_of_a_row_does_not_leak_into_it() -> None:
    random = np.random.default_rng(0)
    table = {"id": np.arange(300)}
    target = random.integers(0, 2, size=300)
    generator = FeatureGenerator([GeneratedFeature("target", ("id",))])

    found = generator.fit_transform(table, target)

    # Every category occurs once: of the other folds nothing is known but their mean.
    assert len(np.unique(found)) <= generator.folds
    assert generator.transform(table).ravel().tolist() == target.tolist()


def test_columns_have_the_names_of_their_features() -> None:
    generator = FeatureGenerator(candidate_features({"count": ["city", "kind"]}))

    assert generator.get_feature_names_out().tolist() == ["count_city", "count_kind"]
    assert generator.fit_transform(TABLE).shape == (4, 2)


def test_data_frames_are_tables() -> None:
    pandas = pytest.importorskip("pandas")

    assert generated(("count", ("city",)), table=pandas.DataFrame(TABLE)) == [[3], [1], [3], [3]]


def test_the_generated_cross_is_selected_among_other_candidates() -> None:
    random = np.random.default_rng(0)
    table = {name: random.integers(0, 12, size=3000) for name in ("C1", "C2", "C3")}
    cells = random.permutation(144) ** 2.0
    cell = random.choice(144, size=3000, p=cells / cells.sum())
    table["C1"], table["C2"] = cell // 12, cell % 12
    features = candidate_features(
        {"count": list(table), "crosscount": [list(table), list(table)], "target": ["C3"]}
    )
    target = np.bincount(cell, minlength=144)[cell] > 25

    generator = FeatureGenerator(features)
    found = generator.fit_transform(table, target)
    selector = GBDTSelector(
        {"objective": "binary", "num_threads": 1}, 0.2, 5, "gain", 30, random_state=0
    ).fit(found, target)

    (best,) = selector.get_selected_features(topk=1)
    assert generator.get_feature_names_out()[best] == "crosscount_C1_C2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 1}, "folds must be >= 2"),
        ({"buckets": 1}, "buckets must be >= 2"),
        ({"features": [GeneratedFeature("count", ("a",))] * 2}, "names of their own"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureGenerator(**{"features": [], **arguments})


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        (("count", ("street",)), "no column 'street'"),
        (("target", ("city",)), "needs a target for each row"),
        (("aggregate", ("kind", "city"), "mean"), "'kind' must hold numbers"),
    ],
)
def test_tables_that_do_not_fit_are_refused(feature: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generated(feature)


def test_missing_numbers_are_refused() -> None:
    generator = FeatureGenerator([GeneratedFeature("histstat", ("price",), "min")])

    with pytest.raises(ValueError, match="'price' has NaN or infinite values"):
        generator.fit({"price": [1.0, np.nan]})


def test_nothing_is_computed_before_fit() -> None:
    with pytest.raises(ValueError, match="call fit or fit_transform first"):
        FeatureGenerator([]).transform(TABLE)
