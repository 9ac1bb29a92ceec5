from __future__ import annotations

from pathlib import Path

import pytest

from nni.cli.main import DONE, REFUSED, main

TEXT = "parser.add_argument('--rate', type=float, default=0.5)\nloss = 1\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(TEXT)
    return path


def test_files_are_written_beside_the_script(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quickstart", str(script)]) == DONE

    names = {path.name for path in script.parent.iterdir()}
    assert names == {"config.yml", "nni_trial.py", "search_space.yml", "train.py"}
    assert "nnictl create --config" in capsys.readouterr().out


def test_files_that_exist_are_kept_without_force(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = script.parent / "config.yml"
    config.write_text("mine")

    assert main(["quickstart", str(script)]) == REFUSED
    assert config.read_text() == "mine"
    assert {path.name for path in script.parent.iterdir()} == {"config.yml", "train.py"}
    assert "--force" in capsys.readouterr().err

    assert main(["quickstart", str(script), "--force"]) == DONE
    assert config.read_text() != "mine"


def test_link_to_nowhere_is_not_written_through(script: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    (script.parent / "config.yml").symlink_to(target)

    assert main(["quickstart", str(script)]) == REFUSED

    assert not target.exists()


def test_link_is_replaced_by_force_and_its_target_kept(script: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    config = script.parent / "config.yml"
    config.symlink_to(target)

    assert main(["quickstart", str(script), "--force"]) == DONE

    assert target.read_text() == "mine"
    assert not config.is_symlink()


def test_script_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "nni_trial.py"
    script.write_text(TEXT)

    assert main(["quickstart", str(script), "--force"]) == REFUSED

    assert script.read_text() == TEXT
    assert "must have another name than config.yml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x =", "must be Python: invalid syntax in line 1"),
        ("x = 1", "no argument to tune"),
    ],
)
def test_script_that_gives_nothing_is_refused(
    text: str, message: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(text)

    assert main(["quickstart", str(script)]) == REFUSED

    assert message in capsys.readouterr().err
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


def test_missing_script_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quickstart", str(tmp_path / "no.py")]) == REFUSED

    assert "SCRIPT must name an existing file" in capsys.readouterr().err
