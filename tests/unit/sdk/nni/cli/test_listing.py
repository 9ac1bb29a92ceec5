"""Forms in which commands print lists."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import yaml

from nni.cli.listing import Form, csv_of, write_listing
from nni.cli.main import DONE, REFUSED, main
from tests.support.in_memory_manager import InMemoryManager

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "space": {"x": [1, 2]}},
    {"id": "b", "note": None, "seconds": 1.5},
]


def printed(form: Form, capsys: pytest.CaptureFixture[str]) -> str:
    write_listing(RECORDS, ("Id",), lambda: [[one["id"]] for one in RECORDS], output=form)
    return capsys.readouterr().out


def test_table_has_the_columns_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("table", capsys) == "Id\na\nb\n"


def test_wide_table_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed("wide", capsys).splitlines()

    assert lines[0].split() == ["id", "space", "note", "seconds"]
    assert lines[1] == 'a   {"x": [1, 2]}  -     -'


def test_json_and_yaml_hold_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed("json", capsys)) == RECORDS
    assert yaml.safe_load(printed("yaml", capsys)) == RECORDS


def test_csv_has_a_column_for_each_field(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(printed("csv", capsys))))

    assert rows[0] == {"id": "a", "space": '{"x": [1, 2]}', "note": "", "seconds": ""}
    assert rows[1]["seconds"] == "1.5"


def test_cells_of_csv_are_quoted() -> None:
    assert csv_of([{"a,b": 'say "x"\n'}]) == '"a,b"\n"say ""x""\n"\n'


def test_titles_of_csv_are_no_formulas_either() -> None:
    assert csv_of([{"=a": 1}]) == "'=a\n1\n"


@pytest.mark.parametrize(
    ("text", "cell"), [("=1+1", "'=1+1"), ("@x", "'@x"), ("-0.5", "-0.5"), ("a=1", "a=1")]
)
def test_text_that_a_spreadsheet_would_run_begins_with_a_quote(text: str, cell: str) -> None:
    assert csv_of([{"name": text}]) == f"name\n{cell}\n"


@pytest.mark.parametrize(
    "command",
    ["trial ls", "experiment list", "runner list", "pool list", "algo list", "token ls"],
)
@pytest.mark.parametrize("form", ["wide", "yaml", "csv", "json"])
def test_command_prints_every_form(
    command: str, form: str, manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")
    manager.add_trial("abcd1234", "tRiA1", result=0.5)
    manager.pools.add("gpus", "slurm")

    assert main([*command.split(), "--output", form]) == DONE

    shown = capsys.readouterr()
    assert shown.out
    assert shown.err == ""


def test_json_beside_another_form_is_refused(
    manager: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    manager.add_experiment("abcd1234")

    assert main(["experiment", "list", "--json", "-o", "csv"]) == REFUSED

    assert "--json and --output csv exclude each other" in capsys.readouterr().err
