"""Tables of trials."""

import sys

import pytest

from nni.hpo import DefineByRunStudy, Study, optimize
from nni.hpo.search.trial_table import data_frame, html_table, trial_columns

SPACE = {"x": {"_type": "choice", "_value": [3, 1, 2]}}


def test_study_as_a_table_of_pandas() -> None:
    pytest.importorskip("pandas")
    study = Study(SPACE, tuner="GridSearch")
    for _ in range(3):
        trial = study.ask()
        trial.set_user_attr("note", "a")
        study.tell(trial, trial.parameters["x"])

    table = study.to_dataframe()

    assert list(table.columns) == ["id", "value", "parameters.x", "user_attrs.note"]
    assert list(table["value"]) == [3, 1, 2]


def test_metrics_of_a_dict_are_columns() -> None:
    pytest.importorskip("pandas")
    study = DefineByRunStudy(seed=0)
    study.tell(study.ask(), {"default": 1, "size": 2})

    assert list(study.to_dataframe().columns) == ["id", "value.default", "value.size"]


def test_notebook_shows_the_best_trial_first_and_in_bold() -> None:
    html = optimize(lambda p: p["x"], SPACE, tuner="GridSearch")._repr_html_()

    assert html.startswith("<p>3 trials</p><table><tr><th>")
    assert html.index("<td><b>1</b></td>") < html.index("<td><span>2</span></td>")


def test_notebook_shows_a_study() -> None:
    study = Study(SPACE, tuner="GridSearch")
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"])

    assert "<td><b>1</b></td>" in study._repr_html_()


def test_cell_has_60_characters_at_most() -> None:
    html = html_table([{"id": 0, "text": "a" * 59 + "bc"}], ())

    assert "a" * 59 + "b<" in html


def test_long_search_is_shown_in_part() -> None:
    rows = [{"id": number, "value": number / 3} for number in range(50)]

    html = html_table(rows, {4})

    assert "50 trials, of which 10 are shown" in html
    assert html.count("<tr>") == 11
    assert "<b>1.33333</b>" in html
    assert "<td><span>49</span></td>" in html


def test_values_cannot_inject_markup() -> None:
    html = html_table([{"id": 0, "<i>": "<script>"}], ())

    assert "<script>" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize(
    ("count", "text"),
    [(10, "<p>10 trials</p>"), (11, "<p>11 trials, of which 10 are shown</p>")],
)
def test_ten_trials_are_shown(count: int, text: str) -> None:
    html = html_table([{"id": number} for number in range(count)], ())

    assert html.startswith(text)
    assert html.count("<td>") == 10


def test_of_many_best_trials_the_first_ten_are_shown_and_no_others() -> None:
    html = html_table([{"id": number} for number in range(20)], set(range(3, 20)))

    assert html.count("<td><b>") == html.count("<td>") == 10
    assert "<b>3</b>" in html
    assert "<b>12</b>" in html


def test_cell_of_a_column_that_a_trial_lacks_is_empty() -> None:
    html = html_table([{"id": 0, "value": 1}, {"id": 1}], ())

    assert "<tr><td><span>1</span></td><td><span></span></td></tr>" in html


def test_parameters_that_are_no_dict_are_one_column() -> None:
    assert trial_columns(7, {"note": "a"}) == {"parameters.": 7, "user_attrs.note": "a"}


def test_table_without_pandas_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(ImportError, match="to_dataframe needs pandas: pip install pandas"):
        data_frame([])
