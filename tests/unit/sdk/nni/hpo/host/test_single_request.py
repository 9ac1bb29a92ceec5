"""Check of custom classes."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from nni.hpo.host.single_request import run_check


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
