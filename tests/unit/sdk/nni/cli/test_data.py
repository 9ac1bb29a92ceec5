from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from nni.cli.data import csv_text


def rows_of(records: list[dict[str, Any]]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(records))))


def record(**changes: object) -> dict[str, Any]:
    return {"id": "aB3dE", "parameter": {"x": 1, "y": "a"}, "value": 0.5, **changes}


@pytest.mark.claim("platform", 49)
def test_one_row_for_each_trial() -> None:
    rows = rows_of([record(), record(id="b", parameter={"x": 2, "z": True}, value=0.25)])

    assert rows == [
        {"id": "aB3dE", "x": "1", "y": "a", "z": "", "reward": "0.5"},
        {"id": "b", "x": "2", "y": "", "z": "True", "reward": "0.25"},
    ]


def test_mapping_of_metrics_gives_reward_and_further_columns() -> None:
    rows = rows_of([record(value={"default": 0.9, "loss": 0.1})])

    assert rows[0]["reward"] == "0.9"
    assert rows[0]["loss"] == "0.1"


def test_mapping_without_default_has_no_reward() -> None:
    assert rows_of([record(value={"loss": 0.1})])[0]["reward"] == ""


def test_nested_parameters_are_json() -> None:
    rows = rows_of([record(parameter={"layer": {"_name": "conv", "k": [1, 2]}})])

    assert rows[0]["layer"] == '{"_name": "conv", "k": [1, 2]}'


def test_intermediates_have_a_column_when_asked_for() -> None:
    rows = rows_of([record(intermediate=[0.1, float("nan")])])

    assert rows[0]["intermediate"] == '[0.1, "NaN"]'


def test_commas_and_quotes_are_quoted() -> None:
    rows = rows_of([record(parameter={"a,b": 'say "hi"\n'})])

    assert rows[0]["a,b"] == 'say "hi"\n'


def test_parameters_that_are_no_mapping_have_one_column() -> None:
    assert rows_of([record(parameter=[1, 2])])[0]["parameter"] == "[1, 2]"


def test_nothing_gives_a_header() -> None:
    assert csv_text([]) == "id,reward\r\n"
