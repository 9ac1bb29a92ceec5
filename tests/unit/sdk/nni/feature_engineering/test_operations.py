"""Encodings of keys by numbers."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from nni.feature_engineering._operations import (
    bucket_edges,
    counts,
    distinct_values,
    keys,
    statistics,
)


def test_missing_values_are_one_category() -> None:
    assert keys(np.array([1.0, np.nan, np.nan])) == [1.0, None, None]


def test_missing_values_of_pandas_are_one_category() -> None:
    table = pandas.DataFrame(
        {
            "integers": pandas.array([1, None, 3], dtype="Int64"),
            "texts": pandas.array(["a", None, "b"], dtype="string"),
            "times": pandas.to_datetime(["2026-01-01", None, "2026-01-02"]).astype(object),
        }
    )

    found = {name: keys(table[name]) for name in table}

    assert found["integers"] == [1, None, 3]
    assert found["texts"] == ["a", None, "b"]
    assert found["times"][1] is None


def test_rows_of_several_columns_are_tuples() -> None:
    assert keys(np.array([1, 2]), ["a", "b"]) == [(1, "a"), (2, "b")]


def test_unknown_keys_have_no_count() -> None:
    assert counts(["a", "b", "a"]).of(["a", "b", "c"]).tolist() == [2.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("min", [1, 7, 1]),
        ("max", [6, 7, 7]),
        ("mean", [3, 7, 4]),
        ("var", [14 / 3, 0, 6.5]),
        ("median", [2, 7, 4]),
    ],
)
def test_statistics_are_those_of_each_key_and_of_all(statistic: str, expected: list[float]) -> None:
    encoding = statistics(list("aaab"), np.array([1.0, 2.0, 6.0, 7.0]), statistic)

    assert encoding.of(["a", "b", "unknown"]).tolist() == pytest.approx(expected)


def test_distinct_values_are_counted_once() -> None:
    encoding = distinct_values(["a", "a", "a", "b"], [1, 1, 2, 1])

    assert encoding.of(["a", "b", "c"]).tolist() == [2.0, 1.0, 0.0]


def test_buckets_hold_as_many_numbers_each() -> None:
    edges = bucket_edges(np.arange(100.0), 4)

    assert np.bincount(np.searchsorted(edges, np.arange(100.0))).tolist() == [25, 25, 25, 25]


def test_repeated_numbers_make_fewer_buckets() -> None:
    assert len(bucket_edges(np.zeros(10), 4)) == 1
