"""Results of earlier searches as samples."""

import json
from pathlib import Path

import pytest

from nni.hpo import Study, optimize
from nni.hpo.search.earlier_results import (
    EarlierResults,
    samples_of,
    searches_of,
    split_by_way,
)

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}
SAMPLE = {"parameter": {"x": 0.5}, "value": 1.0}


def test_samples_of_a_study_are_its_results() -> None:
    study = Study(SPACE, seed=0)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"] if trial.id else None)

    found = list(samples_of(study))

    assert [sample["value"] for sample in found] == [s["parameter"]["x"] for s in found]
    assert len(found) == 2


def test_a_result_gives_the_trials_that_succeeded() -> None:
    def fails_below_a_half(parameters: dict[str, float]) -> float:
        if parameters["x"] < 0.5:
            raise RuntimeError
        return parameters["x"]

    found = list(samples_of(optimize(fails_below_a_half, SPACE, trials=20, seed=0)))

    assert 0 < len(found) < 20
    assert all(sample["value"] == sample["parameter"]["x"] for sample in found)


def test_files_samples_and_lists_of_them(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{**SAMPLE, "id": "abc"}]))

    assert list(samples_of(None)) == []
    assert list(samples_of(path)) == [SAMPLE]
    assert list(samples_of([str(path), SAMPLE, [SAMPLE]])) == [SAMPLE] * 3


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    wrong: list[EarlierResults] = [path, {"parameter": {}}, [3]]

    for text in ("{", '{"parameter": {}}', "[3]"):
        path.write_text(text)
        for earlier in wrong:
            with pytest.raises(ValueError, match="warm_start_from"):
                list(samples_of(earlier))


def test_each_search_has_its_samples_and_single_samples_are_one(tmp_path: Path) -> None:
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps([SAMPLE]))

    assert list(searches_of(None)) == []
    assert list(searches_of(path)) == [(SAMPLE,)]
    assert list(searches_of(SAMPLE)) == [(SAMPLE,)]
    assert list(searches_of([[SAMPLE, SAMPLE], str(path)])) == [(SAMPLE, SAMPLE), (SAMPLE,)]
    assert list(searches_of([SAMPLE, SAMPLE])) == [(SAMPLE, SAMPLE)]


def test_way_chooses_how_results_enter() -> None:
    assert split_by_way([SAMPLE], "value") == ((SAMPLE,), ())
    assert split_by_way([SAMPLE], "rank") == ((), ((SAMPLE,),))
    with pytest.raises(ValueError, match="must be one of value, rank"):
        split_by_way([SAMPLE], "size")  # type: ignore[arg-type] # what a user may write


def test_single_samples_are_one_search_after_the_others() -> None:
    other = {"parameter": {"x": 0.25}, "value": 2.0}

    assert list(searches_of([SAMPLE, [other], SAMPLE])) == [(other,), (SAMPLE, SAMPLE)]


@pytest.mark.parametrize("wrong", [3, [3], {"parameter": {}}, [{"value": 1}]])
def test_searches_of_no_result_are_refused(wrong: EarlierResults) -> None:
    with pytest.raises(ValueError, match="warm_start_from must be a Study"):
        list(searches_of(wrong))


def test_path_may_begin_with_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data.json").write_text(json.dumps([SAMPLE]))

    assert list(samples_of("~/data.json")) == [SAMPLE]
