"""`nnictl algo`: the table and the pages of algorithms."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nni.cli.algo import app

FACTS = ("Evolution", "tuners", "EvolutionTuner", "nni.algorithms.hpo.evolution_tuner")


@pytest.fixture(autouse=True)
def own_registrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def output(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list_has_a_row_per_algorithm() -> None:
    rows = json.loads(output("list", "--json"))

    (row,) = [row for row in rows if row["Name"] == "Evolution"]
    assert tuple(row[key] for key in ("Name", "Type", "Class Name", "Module Name")) == FACTS
    assert row["Source"] == "nni"


def test_page_has_arguments_and_capabilities() -> None:
    page = output("show", "Evolution")

    for text in (*FACTS, "Conditional Spaces", "Use When", "population_size", "in [1, 99999]"):
        assert text in page


def test_page_as_json_is_one_object() -> None:
    page = json.loads(output("show", "BOHB", "--json"))

    assert page["Type"] == "advisors"
    assert page["Arguments"][2]["Range"] == "> min_budget"


def test_page_is_found_by_another_spelling_of_the_name() -> None:
    assert json.loads(output("show", "gp", "--json"))["Name"] == "GPTuner"


def test_unknown_name_lists_the_known_ones() -> None:
    done = CliRunner().invoke(app, ["show", "TPEE"])

    assert done.exit_code != 0
    assert "known: Anneal, auto" in str(done.exception)
