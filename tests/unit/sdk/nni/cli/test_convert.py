from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from nni.cli.main import DONE, REFUSED, main
from nni.experiment.config import ExperimentConfig
from tests.support.experiment_configs import MINIMAL, write
from tests.support.schema_v1_samples import sample


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A sample of schema v1 with a search space and code."""
    return sample("local_assessor", tmp_path)


def test_converted_file_is_written_beside_the_old_one(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = old.read_text()

    assert main(["config", "convert", str(old)]) == DONE

    new = old.with_name("config_v2.yml")
    shown = capsys.readouterr()
    assert shown.out == f"INFO: {old} is converted to schema v2: {new}\n"
    assert shown.err == "WARNING: without meaning in schema v2: authorName\n"
    assert yaml.safe_load(new.read_text())["searchSpaceFile"] == "search_space.json"
    assert old.read_text() == before


def test_converted_file_describes_the_same_experiment(old: Path) -> None:
    assert main(["config", "convert", str(old)]) == DONE

    again = ExperimentConfig.load(old.with_name("config_v2.yml"))
    assert again == ExperimentConfig.load(old, warn=lambda _: None)
    again.validate()


def test_paths_are_absolute_in_another_folder(old: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    new = tmp_path / "other" / "new.yml"

    assert main(["config", "convert", str(old), "-o", str(new)]) == DONE

    assert ExperimentConfig.load(new) == ExperimentConfig.load(old, warn=lambda _: None)


def test_file_that_exists_is_replaced_only_with_force(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = write(old.with_name("config_v2.yml"), "mine")

    assert main(["config", "convert", str(old)]) == REFUSED
    assert "replace it with --force" in capsys.readouterr().err
    assert new.read_text() == "mine"
    assert main(["config", "convert", str(old), "--force"]) == DONE
    assert "trialCommand" in new.read_text()


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_converted_file_is_as_private_as_the_old_one(old: Path, mode: int) -> None:
    old.chmod(mode)

    assert main(["config", "convert", str(old)]) == DONE

    assert stat.S_IMODE(old.with_name("config_v2.yml").stat().st_mode) == mode


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL, "the file must have schema v1"),
        ("[1]", "the file must have schema v1"),
        ("a: [", "is no valid YAML"),
        ("trainingServicePlatform: local\n1: 2", "a key must be a text, got 1"),
        ("trainingServicePlatform: local", "trial.command must be given"),
    ],
)
def test_other_file_is_refused_and_nothing_written(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "c.yml", text)

    assert main(["config", "convert", str(path)]) == REFUSED

    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error
    assert [file.name for file in tmp_path.iterdir()] == ["c.yml"]


def test_platform_without_a_successor_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "convert", str(sample("dlts", tmp_path))]) == REFUSED

    assert "DLTS is not supported: it has no public API; use kubeflow" in capsys.readouterr().err
    assert not (tmp_path / "config_v2.yml").exists()


@pytest.mark.parametrize(
    ("output", "message"),
    [("nowhere/new.yml", "must be in a folder that exists"), (".", "must be a file, not a folder")],
)
def test_place_that_cannot_be_written_is_refused(
    old: Path, output: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "convert", str(old), "--output", str(old.parent / output)]) == REFUSED

    assert f"--output {message}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.yml", "."])
def test_file_that_cannot_be_read_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "convert", str(tmp_path / name)]) == REFUSED

    assert "FILE must name" in capsys.readouterr().err
