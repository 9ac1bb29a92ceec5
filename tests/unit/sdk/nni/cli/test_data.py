from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from nni.cli.data import csv_text
from nni.cli.main import DONE, REFUSED, main
from nni_wire.values import from_value, to_value
from tests.support.in_memory_manager import InMemoryManager


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


def test_texts_that_a_spreadsheet_would_run_begin_with_a_quote() -> None:
    rows = rows_of([record(parameter={"=cmd": "=1+1", "y": -1.5, "z": "-1"}, value="@x")])

    assert rows == [{"id": "aB3dE", "'=cmd": "'=1+1", "y": "-1.5", "z": "-1", "reward": "'@x"}]


def test_parameters_that_are_no_mapping_have_one_column() -> None:
    assert rows_of([record(parameter=[1, 2])])[0]["parameter"] == "[1, 2]"


def test_nothing_gives_a_header() -> None:
    assert csv_text([]) == "id,reward\r\n"


@pytest.fixture
def tuning(manager: InMemoryManager) -> InMemoryManager:
    config = manager.add_experiment("abcd1234").config
    config.tuner.name = "TPE"
    config.search_space.CopyFrom(to_value({"x": {"_type": "uniform", "_value": [0, 1]}}))
    return manager


def test_import_says_how_many_samples_are_taken_and_why_others_are_not(
    tuning: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "samples.json"
    good = {"parameter": {"x": 0.5}, "value": 1}
    file.write_text(json.dumps([good, {"parameter": {"x": 5}, "value": 1}]))

    assert main(["experiment", "import", "-f", str(file)]) == DONE

    shown = capsys.readouterr()
    assert shown.out == "INFO: 1 of 2 samples are given to the algorithm; 1 are not.\n"
    assert "not taken: parameter 'x': must lie in [0.0, 1.0], got 5 (sample 2)" in shown.err
    assert [from_value(data) for data in tuning.imported] == [[good]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"parameter": {"x": 5},\n "value": 1}]', "none of the 1 samples"),
        ('[{"parameter": 1,\n "value": }]', "line 2, column 11 is no valid JSON"),
        ('{"parameter": {}}', "must hold a JSON list of samples"),
    ],
)
def test_import_of_nothing_usable_names_the_file_and_sends_nothing(
    text: str,
    message: str,
    tuning: InMemoryManager,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "samples.json"
    file.write_text(text)

    assert main(["experiment", "import", "-f", str(file)]) == REFUSED

    shown = capsys.readouterr().err
    assert message in shown
    assert "samples.json" in shown
    assert tuning.imported == []


def test_import_into_an_algorithm_that_learns_nothing_is_a_warning(
    tuning: InMemoryManager, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuning.known["abcd1234"].config.tuner.name = "Random"
    file = tmp_path / "samples.json"
    file.write_text(json.dumps([{"parameter": {"x": 0.5}, "value": 1}]))

    assert main(["experiment", "import", "-f", str(file)]) == DONE

    assert "Random does not learn from samples" in capsys.readouterr().err
