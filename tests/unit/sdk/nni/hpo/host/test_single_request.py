"""Check of custom classes."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nni.hpo.host.single_request import run_check, run_importance


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "checked_algorithms.py").write_text(
        """
from nni.tuner import Tuner
print("noise")

class Good(Tuner):
    lookahead = True
    def __init__(self, needed): raise RuntimeError("is not called")

class NoTuner: ...
"""
    )
    (tmp_path / "checked_exit.py").write_text("raise SystemExit('I leave')")
    return tmp_path


def check(class_name: str, folder: Path) -> dict[str, Any]:
    answers = io.StringIO()
    request = {"kind": "tuner", "class_name": class_name, "code_directory": str(folder)}
    assert run_check(io.StringIO(json.dumps(request)), answers) == 0
    answer: dict[str, Any] = json.loads(answers.getvalue())
    return answer


def test_good_class_passes_without_being_built(folder: Path) -> None:
    assert check("checked_algorithms.Good", folder) == {"ok": True, "lookahead": True}


@pytest.mark.parametrize(
    ("class_name", "words"),
    [
        ("Unqualified", "must be qualified"),
        ("absent_module.Good", "No module named 'absent_module'"),
        ("checked_algorithms.Absent", "has no such class"),
        ("checked_algorithms.NoTuner", "must be a subclass of Tuner"),
        ("checked_exit.Any", "I leave"),
    ],
)
def test_unusable_class_is_reported_with_the_reason(
    folder: Path, class_name: str, words: str
) -> None:
    answer = check(class_name, folder)

    assert not answer["ok"]
    assert words in answer["error"]


def test_named_class_is_imported() -> None:
    answers = io.StringIO()

    run_check(io.StringIO(json.dumps({"kind": "tuner", "name": "Random"})), answers)

    assert json.loads(answers.getvalue()) == {"ok": True, "lookahead": True}


def test_kind_without_lookahead_has_none() -> None:
    answers = io.StringIO()

    run_check(io.StringIO(json.dumps({"kind": "assessor", "name": "Medianstop"})), answers)

    assert json.loads(answers.getvalue()) == {"ok": True, "lookahead": False}


def test_importance_of_an_architecture_search_is_that_of_its_choices() -> None:
    space = {
        "width": {"_type": "choice", "_value": [8, 16], "kind": "value"},
        "inputs": {"_type": "subset", "_value": [0, 1], "kind": "inputs", "chosen": 1},
    }
    trials = [
        ({"sample": {"width": width, "inputs": [one]}, "model": {}}, float(width))
        for width in (8, 16)
        for one in (0, 1)
        for _ in range(4)
    ]
    request = {
        "search_space": space, "trials": trials, "metric": "default", "optimize_mode": "maximize",
    }  # fmt: skip
    answers = io.StringIO()

    assert run_importance(io.StringIO(json.dumps(request)), answers) == 0

    answer = json.loads(answers.getvalue())
    shares = dict(answer["shares"])
    assert answer["trials"] == len(trials)
    assert answers.getvalue().endswith("}\n")
    assert sum(shares.values()) + answer["interactions"] == pytest.approx(1.0)
    assert max(shares, key=lambda name: shares[name]) == "width"
    assert set(shares) == {"width", "inputs/0", "inputs/1"}


def test_class_is_found_in_its_code_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "checked_elsewhere.py").write_text(
        "from nni.tuner import Tuner\nclass Mine(Tuner): ...\n"
    )

    assert check("checked_elsewhere.Mine", tmp_path) == {"ok": True, "lookahead": False}
    assert str(tmp_path) in sys.path


@pytest.mark.parametrize("directory", [{}, {"code_directory": None}, {"code_directory": ""}])
def test_class_without_a_code_directory_is_found_on_the_path(
    folder: Path, directory: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = list(sys.path)
    monkeypatch.setattr(sys, "path", known)
    answers = io.StringIO()
    request = {"kind": "tuner", "class_name": "checked_algorithms.Good", **directory}

    run_check(io.StringIO(json.dumps(request)), answers)

    assert json.loads(answers.getvalue()) == {"ok": True, "lookahead": True}
    assert answers.getvalue().endswith("}\n")
    assert known.count(str(Path.cwd())) == sys.path.count(str(Path.cwd()))


@pytest.mark.parametrize(("metric", "mode"), [("cost", "maximize"), ("default", "minimize")])
def test_importance_is_that_of_the_requested_metric(metric: str, mode: str) -> None:
    space = {name: {"_type": "choice", "_value": [0, 1]} for name in ("a", "b")}
    pairs = [
        ({"a": a, "b": b}, {"default": a, "cost": b})
        for a in (0, 1)
        for b in (0, 1)
        for _ in range(4)
    ]
    request = {"search_space": space, "trials": pairs, "metric": metric, "optimize_mode": mode}
    answers = io.StringIO()

    run_importance(io.StringIO(json.dumps(request)), answers)

    shares = dict(json.loads(answers.getvalue())["shares"])
    assert next(iter(shares)) == ("b" if metric == "cost" else "a")


def test_importance_of_too_few_trials_is_an_error() -> None:
    request = {"search_space": {}, "trials": [], "metric": "loss", "optimize_mode": "minimize"}
    answers = io.StringIO()

    assert run_importance(io.StringIO(json.dumps(request)), answers) == 0

    assert "at least 4 trials whose 'loss'" in json.loads(answers.getvalue())["error"]
