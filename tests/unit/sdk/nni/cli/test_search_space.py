from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni.cli.main import main
from nni.cli.search_space import DEFAULT_FILE

COMMAND = ["ss_gen", "--trial_command", "python3 trial.py"]


@pytest.fixture(autouse=True)
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An annotated code directory, and at the same time the working directory."""
    (tmp_path / "trial.py").write_text("'''@nni.variable(nni.choice(1, 2), name=x)'''\nx = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.claim("platform", 53)
def test_space_goes_to_the_documented_file(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMAND) == 0

    written = code / "nni_auto_gen_search_space.json"
    assert json.loads(written.read_text()) == {"x": {"_type": "choice", "_value": [1, 2]}}
    assert DEFAULT_FILE in capsys.readouterr().out


def test_folder_and_file_can_be_named(code: Path) -> None:
    (code / "deep").mkdir()
    (code / "trial.py").rename(code / "deep" / "trial.py")

    assert main([*COMMAND, "--trial_dir", "deep", "--file", "space.json"]) == 0

    assert set(json.loads((code / "space.json").read_text())) == {"x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ss_gen"], "--trial_command"),
        (["ss_gen", "--trial_command", " "], "must be the command"),
        ([*COMMAND, "--trial_dir", "nowhere"], "must be a folder"),
        ([*COMMAND, "--file", "nowhere/space.json"], "cannot be written"),
    ],
)
def test_wrong_use_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_code_that_describes_no_space_is_refused(
    code: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (code / "trial.py").write_text("x = 1\n")

    assert main(COMMAND) == 2
    assert "must have an annotation" in capsys.readouterr().err
    assert not (code / DEFAULT_FILE).exists()
